/* Vocabulary: the names that keys of a run's tables have (words, ids, features, columns), as a file next to
 * its store.
 *     write:  begin -> add, add, ... -> commit | drop          read:  open -> entries, key, find -> close
 * File      Lines of tab-separated fields. First "downpour names 1", "run N", "source HEX" (what the names
 *           were made from); then for each name its group, key and text, in the order in which tables are
 *           exported; last "end N", "all" or "cut", and a sum of all bytes before. In a text, control
 *           characters and the backslash are written \xHH; other bytes stay.
 * Promise   A file is complete or missing. A reader accepts only an intact file: one that is damaged,
 *           cut or of another run is refused by name. Names only grow: a run that continues another one
 *           begins with a copy of its names, and adds those of its own data.
 * Thread    A writer: one. A vocabulary is constant after open.
 * Memory    Reading: the file's bytes, and 24 bytes a name. Texts are the vocabulary's own, and end in 0.
 * Failure   DP_NOT_FOUND: there is no such file; DP_DATA: damaged, or of another run; DP_IO, DP_FULL,
 *           DP_NOMEM. */
#ifndef DP_VOCAB_VOCAB_H
#define DP_VOCAB_VOCAB_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define DP_VOCAB_EVERY_GROUP UINT32_MAX /* the key has this name in each of the model's groups */
#define DP_VOCAB_COLUMN                                                                                      \
    (UINT32_MAX - 1)            /* not a row's key: the place of a column of numbers that the model takes */
#define DP_VOCAB_TEXT_MAX 1024u /* longer names are cut */

/* group: as the model declares them (worker/compute/graph.h), or one of the two above. key: as tables have
 * it, not mixed. */
struct dp_vocab_name {
    uint32_t group;
    uint64_t key;
    const char *text;
    size_t len;
};

struct dp_vocab_sink {
    enum dp_status (*visit)(void *context, const struct dp_vocab_name *name, struct dp_error *err);
    void *context;
};

/* A name as the file has it, with control characters and the backslash as \xHH; blanks: also blanks, and a
 * # in front, so that it is one field of a line of text. */
void dp_vocab_print(FILE *stream, const char *text, bool blanks);

struct dp_vocab_writer;
enum dp_status dp_vocab_begin(const char *path, uint32_t run, uint64_t source, struct dp_vocab_writer **out,
                              struct dp_error *err);
enum dp_status dp_vocab_add(struct dp_vocab_writer *writer, const struct dp_vocab_name *name,
                            struct dp_error *err);
/* cut: there are keys whose names were left out. */
enum dp_status dp_vocab_commit(struct dp_vocab_writer **writer, bool cut, struct dp_error *err);
void dp_vocab_drop(struct dp_vocab_writer **writer); /* accepts NULL inside, leaves NULL */
/* The run and source that the file's first line names; nothing else is read. False: no such line is there. */
bool dp_vocab_head(const char *path, uint32_t *run, uint64_t *source);
/* Makes the names of `from`, of an earlier run, the first ones of run `of`: with DP_VOCAB_EARLIER as the
 * source. */
#define DP_VOCAB_EARLIER UINT64_C(0)
enum dp_status dp_vocab_copy(const char *from, const char *to, uint32_t of, struct dp_error *err);

struct dp_vocab;
enum dp_status dp_vocab_open(const char *path, uint32_t run, struct dp_vocab **out, struct dp_error *err);
void dp_vocab_close(struct dp_vocab **vocab); /* accepts NULL inside, leaves NULL */
size_t dp_vocab_count(const struct dp_vocab *vocab);
/* The names in the file's order; at < count. */
struct dp_vocab_name dp_vocab_at(const struct dp_vocab *vocab, size_t at);
/* Where in that order a key's first name stands, names of every group included; `next` gives its further
 * ones (categories that share a hashed key). DP_VOCAB_NONE: it has none. */
#define DP_VOCAB_NONE SIZE_MAX
size_t dp_vocab_key(const struct dp_vocab *vocab, uint32_t group, uint64_t key);
size_t dp_vocab_next(const struct dp_vocab *vocab, size_t at);
/* Where a name stands. */
size_t dp_vocab_find(const struct dp_vocab *vocab, uint32_t group, const char *text);
/* Up to `room` names of the group that are spelled much like `text`, the likeliest first. Returns how
 * many. */
size_t dp_vocab_similar(const struct dp_vocab *vocab, uint32_t group, const char *text, const char **out,
                        size_t room);

#endif
