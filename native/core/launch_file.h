/* The file that a launch makes for others to see: gone when it ends, however that comes. */
#ifndef WULF_LAUNCH_FILE_H
#define WULF_LAUNCH_FILE_H

#include <stddef.h>

/* Write the name of a file of this launch: the kind, the user, the node and the process. */
void launch_file_name(char *name, size_t room, const char *kind);
/* Remove what launches of this user left in a directory an hour ago or longer, of one kind. */
void launch_files_tidy(const char *directory, const char *kind);

/* From now on this process has the file, and removes it where it is ended. One at a time. Said before the
 * file is made, where nothing of that name is anybody else's. */
void launch_file_begin(const char *path);
/* Where this process is ended, a file of another rank of its node goes, too, as long as it has one itself:
 * launchers may kill the others when one rank has ended, whether they have heard of the end or not. */
void launch_file_also(const char *path);
/* It could not be made: what has its name is left alone. */
void launch_file_forget(void);
/* Remove the file, if there is one: another rank may have done so. 0, or -1 with errno. */
int launch_file_end(void);
/* Remove all of them where this process is ended: for handlers of signals, which may interrupt each other. */
void launch_file_remove(void);

#endif
