/* Files by which systemd sets a card: what they can say, and what of others' files ours must carry on. */
#ifndef WULF_GUARD_KIND_LINK_FILE_H
#define WULF_GUARD_KIND_LINK_FILE_H

#include "guard/table.h"

/* The lines of a .link file for a value; FAILED where it cannot say it. */
MUST_CHECK enum outcome link_lines(const struct known_knob *row, const char *value, struct text *text);
/* The rest of a .link file for an interface: whom it matches, and what of the file that udev has applied
 * gives it its name. */
MUST_CHECK enum outcome link_text(const char *path, const char *interface, const char *own,
                                  struct text *text);
/* Whether a drop-in is one of the .network file that systemd-networkd has applied to the interface. */
MUST_CHECK enum outcome network_file_checked(const char *path, const char *interface);

#endif
