/* Messages of two ranks by another way than those of MPI: memory that ranks of a node share, or a file. */
#ifndef WULF_EMULATE_MAIL_H
#define WULF_EMULATE_MAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "emulate/emulation.h"

enum method { METHOD_MESSAGES, METHOD_MEMORY, METHOD_FILE };

/* The method of a name; -1 where there is none. */
int mail_method(const char *name);

/* All ranks: make the boxes that they receive in, and tell each other where these are. `directory` is that of
 * the file. 0, or -1 with the failure of the emulation. */
int mail_open(struct emulation *emulation, enum method method, const char *directory);
/* All ranks, after everything was received. */
int mail_close(struct emulation *emulation);

/* Whether messages to or from a rank of a team go this way. Of memory they do not to another node. */
bool mail_carries(const struct emulation *emulation, const struct team *team, int peer);

/* As MPI_Send and MPI_Recv: what they return, too. `got` is how much came. */
int mail_send(struct emulation *emulation, const struct trace_record *record);
int mail_receive(struct emulation *emulation, const struct team *team, int source, int tag, unsigned char *in,
                 uint64_t room, uint64_t *got);

#endif
