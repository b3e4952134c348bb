/* The file that a launch makes for others to see: gone when it ends, however that comes. */
#ifndef WULF_LAUNCH_FILE_H
#define WULF_LAUNCH_FILE_H

#include <stddef.h>

/* Write the name of a file of this launch: the kind, the user, the node and the process. */
void launch_file_name(char *name, size_t room, const char *kind);
/* Remove what launches of this user left in a directory an hour ago or longer, of one kind. */
void launch_files_tidy(const char *directory, const char *kind);

/* From now on this process has the file, and removes it where it is ended. One at a time. */
void launch_file_begin(const char *path);
/* Remove the file, if there is one; also for handlers of signals. 0, or -1 with errno. */
int launch_file_end(void);

#endif
