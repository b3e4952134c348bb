/* At the end all streams are where rank 0 is. */
#ifndef WULF_TRACER_COLLECT_H
#define WULF_TRACER_COLLECT_H

/* All ranks together: those whose directory rank 0 does not see send it their file, which is no longer
 * theirs. */
void collect(const char *directory, const char *path);

#endif
