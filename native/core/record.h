/* Writes JSON Lines: one object a line, every line whole, whatever the text in it. */
#ifndef WULF_RECORD_H
#define WULF_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing text. When memory runs out it stays `failed`, and is never written. */
struct record {
    char *text;
    size_t length, capacity;
    bool failed;
    bool comma; /* the next value needs one before it */
};

void record_open(struct record *record, char bracket); /* '{' or '[' */
void record_close(struct record *record, char bracket);
void record_key(struct record *record, const char *key);
/* Text is UTF-8; bytes that are not become U+FFFD, control characters are escaped. */
void record_string(struct record *record, const char *text);
void record_unsigned(struct record *record, uint64_t value);
/* A number with so many decimals; what is not finite is written as null. */
void record_double(struct record *record, double value, int decimals);
void record_bool(struct record *record, bool value);
void record_null(struct record *record);

/* Begin an object of that type. */
void record_begin(struct record *record, const char *type);
void record_pair_string(struct record *record, const char *key, const char *text);
void record_pair_unsigned(struct record *record, const char *key, uint64_t value);
void record_pair_double(struct record *record, const char *key, double value, int decimals);
void record_pair_bool(struct record *record, const char *key, bool value);
/* Lists of numbers. */
void record_doubles(struct record *record, const char *key, const double *values, size_t count, int decimals);
void record_wholes(struct record *record, const char *key, const uint64_t *values, size_t count);

/* End the object's line and write it whole; 0, or -1 with errno. The record is empty afterwards. */
int record_write(struct record *record, int fd);
void record_free(struct record *record);

#endif
