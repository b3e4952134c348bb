/* What a rank needs for its stream; nothing of it is trusted before it has been surveyed. */
#ifndef WULF_EMULATE_SURVEY_H
#define WULF_EMULATE_SURVEY_H

#include "emulate/learned.h"
#include "emulate/shelf.h"
#include "emulate/teams.h"

struct survey {
    uint64_t body, tail;        /* slots: of the first iteration, and behind the last */
    size_t out_bytes, in_bytes; /* largest message to one rank, and from one */
    size_t together_bytes;      /* of a collective, what is sent or what is received */
    size_t put_bytes;           /* end of what is put into some window */
    size_t requests;            /* numbers of requests, from 0 on */
    size_t windows;             /* places of windows, by their tags */
    size_t programs;            /* numbers of programs, from 0 on */
    uint64_t *iterations;       /* of each that this rank has */
    struct shelf passing, stay; /* receives: those that end, and persistent ones */
};

/* 0, or -1 with what is wrong and where. */
int survey_make(struct survey *survey, const struct stream *stream, const struct teams *teams,
                const struct learned *learned, struct failure *failure);
void survey_free(struct survey *survey);

#endif
