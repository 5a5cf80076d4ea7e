/* Name set: the distinct names of a file, each with a key, in a hash table; they can be visited in order.
 *     {0} | {.max} -> add, find, ... -> visit -> clear
 * Promise   A name is there once in each group. visit gives them by ascending `rank`, and those of equal rank
 *           in the order in which they were added. Finding a name takes constant time.
 * Thread    One.
 * Memory    The texts, each ended by a NUL byte, and about 60 bytes a name.
 * Failure   DP_NOMEM. */
#ifndef DP_READ_NAME_SET_H
#define DP_READ_NAME_SET_H

#include "common/vocab/vocab.h"

struct dp_name_entry {
    uint64_t rank, key, hash, at; /* at: of its text */
    uint32_t group, len, order;
};

struct dp_name_set {
    char *texts;
    uint64_t texts_len, texts_max;
    struct dp_name_entry *entry;
    uint32_t *slots; /* 1 + the entry's number; 0: free */
    uint64_t count, room, mask;
    uint64_t max; /* when there are so many, add sets `cut` instead; 0: no limit */
    bool cut;
    uint64_t probes; /* slots looked at by all calls */
};

void dp_name_set_clear(struct dp_name_set *set);
/* hash: of the text, 64 bits; equal hashes count as equal texts. NULL: the group has no such name. Lent until
 * the next add. */
const struct dp_name_entry *dp_name_set_find(struct dp_name_set *set, uint32_t group, uint64_t hash);
/* The text of that name, or NULL. */
const char *dp_name_set_text(struct dp_name_set *set, uint32_t group, uint64_t hash);
/* Has no effect when the group has the name. */
enum dp_status dp_name_set_add(struct dp_name_set *set, const struct dp_vocab_name *name, uint64_t hash,
                               uint64_t rank, struct dp_error *err);
/* Call once, at the end. It sorts the set. Texts are cut to DP_VOCAB_TEXT_MAX bytes. */
enum dp_status dp_name_set_visit(struct dp_name_set *set, struct dp_vocab_sink sink, struct dp_error *err);

#endif
