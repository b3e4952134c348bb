/* Files of launches that were killed. */
#ifndef WULF_ABANDONED_H
#define WULF_ABANDONED_H

#include <stddef.h>

/* Write the name of a file of this launch: the kind, the user, the node and the process. */
void abandoned_name(char *name, size_t room, const char *kind);
/* Remove what launches of this user left in a directory an hour ago or longer, of one kind. */
void abandoned_remove(const char *directory, const char *kind);

#endif
