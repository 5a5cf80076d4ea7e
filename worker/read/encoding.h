/* Encoding: blocks of a text file as UTF-8: decoded from a named encoding, or checked. Private to this room.
 *     {0} -> open -> (give a block, take, take, ... until it is used up) ... -> close
 *     {0} -> check a block, check the next, ...
 * Promise   What comes out is UTF-8 (RFC 3629). Blocks may be cut anywhere, in a character too.
 * Thread    One at a time.
 * Memory    A decoded block is lent until the next take.
 * Failure   DP_ARGUMENT: there is no such encoding. DP_DATA names the file, the line, the byte and the
 *           remedy. */
#ifndef DP_READ_ENCODING_H
#define DP_READ_ENCODING_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dp_encoding {
    void *iconv; /* NULL: not open */
    char *name;
    uint64_t ends;             /* line ends so far */
    const unsigned char *from; /* what is left of the block that was given */
    size_t left;
    char part[16]; /* the begin of a character that the next block completes */
    size_t part_len;
    unsigned char *text; /* decoded */
    size_t text_len;
};

/* name: of iconv(3). */
enum dp_status dp_encoding_open(struct dp_encoding *encoding, const char *name, struct dp_error *err);
void dp_encoding_close(struct dp_encoding *encoding); /* accepts {0} */
/* Decodes some of what is left; text_len may be 0. path: for messages. */
enum dp_status dp_encoding_take(struct dp_encoding *encoding, const char *path, struct dp_error *err);
/* Checks that the next block continues UTF-8. */
enum dp_status dp_encoding_check(struct dp_encoding *encoding, const char *path, const unsigned char *bytes,
                                 size_t len, struct dp_error *err);
/* The end of the file: no character may be cut. */
enum dp_status dp_encoding_end(const struct dp_encoding *encoding, const char *path, struct dp_error *err);

#endif
