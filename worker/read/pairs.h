/* Pairs: users and items that met, out of a text.
 *     {0} -> read -> (read_negatives) -> clear
 * Pairs     Lines "user item", numbers or dates behind them or not. Fields are separated by tabs, "::", semicolons, commas or
 *           blanks, whichever of these the first line has first, and may stand in double quotes; lines of whole numbers may
 *           mix blanks and commas. Names of columns in the first line are left out, and the log says so.
 * Lists     Lines "user item item item ...", as LightGCN's data has them; a user alone met nothing.
 * Both      Ids are whole numbers or names (ids.h). Empty lines and those that begin with '#' say nothing.
 * Thread    One at a time.
 * Failure   DP_DATA with the line and what was expected; DP_NOMEM. clear is all that may follow. */
#ifndef DP_READ_PAIRS_H
#define DP_READ_PAIRS_H

#include "worker/read/dataset.h"
#include "worker/read/ids.h"
#include "worker/read/unpack.h"

enum { DP_PAIRS_USERS, DP_PAIRS_ITEMS };

struct dp_pairs {
    uint64_t count, max;
    uint64_t *keys;         /* [2 * count]: user, item */
    uint64_t *lines;        /* [count] */
    struct dp_ids names[2]; /* of users, of items */
    char separator;         /* of fields; ':' is "::", ' ' any blank; 0: not known yet */
    bool header;            /* there was one */
    bool may_be_header;     /* the one pair so far is of names */
};

/* lists: which of the two the text is. */
DP_MUST_USE
enum dp_status dp_pairs_read(struct dp_pairs *pairs, const struct dp_dataset_options *options, bool lists,
                             struct dp_unpack *unpack, struct dp_error *err);
/* The file of negatives (Neural Collaborative Filtering): for each pair of `pairs` a line "(user,item) item item ...". Each
 * pair is followed by those of its user with these items; starts: [count before + 1], where each list begins, to be freed. */
DP_MUST_USE
enum dp_status dp_pairs_read_negatives(struct dp_pairs *pairs, const struct dp_dataset_options *options,
                                       uint64_t **starts, struct dp_error *err);
/* An id as the text has it; a long name is cut. */
void dp_pairs_show(const struct dp_pairs *pairs, int side, uint64_t key, char out[128]);
void dp_pairs_clear(struct dp_pairs *pairs); /* accepts {0} */

/* Whether a text that begins so can only be lists: whole numbers alone, more than four in some line, and not as many in each. */
bool dp_pairs_are_lists(const unsigned char *bytes, size_t len);

#endif
