/* Pairs: interactions of users and items, read from a text.
 *     {0} -> read -> (read_negatives) -> clear
 * Pairs     Lines of fields, of which one is the user and one the item (pairs_columns.h). Fields are
 *           separated
 *           by tabs, "::", semicolons, commas or blanks: by the first of these that the first line has. They
 *           may be in double quotes (csv_record.h); only between commas or semicolons a quoted field may have
 *           line ends. Lines of integers may mix blanks and commas. A header is left out.
 * Lists     Lines "user item item item ...", as in LightGCN's data; a user alone has no interactions.
 * Both      An id that is an integer below 2^63 without leading zeros is its own key. Any other text is a
 *           name, whose key is a hash of its bytes, below 2^63: the same in each file, so that neither a test
 *           file nor a store needs a dictionary. Two names with one key are refused. Empty lines and lines
 *           that begin with '#' are ignored.
 * Thread    One at a time.
 * Failure   DP_DATA with the line and the expected form; DP_NOMEM. After a failure only clear may follow. */
#ifndef DP_READ_PAIRS_H
#define DP_READ_PAIRS_H

#include "worker/read/name_set.h"
#include "worker/read/pairs_columns.h"
#include "worker/read/unpack.h"

struct dp_pairs {
    uint64_t count, max, ratings_max;
    uint64_t *keys;              /* [2 * count]: user, item */
    float *ratings;              /* [count], with options.rated; NaN: none */
    uint64_t *lines;             /* [count] */
    struct dp_name_set names[2]; /* of users, of items: ids that are no integers, by their keys */
    struct dp_pairs_columns columns;
    struct dp_csv_record record;   /* the line that is read */
    char separator;                /* of its fields; 0: not known yet */
    char *first_line;              /* if it may be a header: the only pair so far is of names */
    uint64_t first_texts;          /* its other columns that have text, a bit for each of the first 64 */
    float rating_low, rating_high; /* of all lines; low > high: there are none */
};

/* lists: the text is of lists, not of pairs. */
enum dp_status dp_pairs_read(struct dp_pairs *pairs, const struct dp_dataset_options *options, bool lists,
                             struct dp_unpack *unpack, struct dp_error *err);
/* Reads the file of negatives (Neural Collaborative Filtering): for each pair a line "(user,item) item item
 * ...". Afterwards each pair is followed by the pairs of its user with these items. starts: [count before +
 * 1], where each list begins; the caller frees it. */
enum dp_status dp_pairs_read_negatives(struct dp_pairs *pairs, const struct dp_dataset_options *options,
                                       uint64_t **starts, struct dp_error *err);
/* Whether it is an integer by the rule above, and which. */
bool dp_pairs_integer(const char *at, size_t len, uint64_t *out);
/* Sets *key to the key of an id, and remembers a name. */
enum dp_status dp_pairs_key(struct dp_name_set *names, const char *at, size_t len, uint64_t *key,
                            struct dp_error *err);
/* An id as in the text; number: for the text of an integer. Lent until the next key. */
const char *dp_pairs_text(struct dp_pairs *pairs, int side, uint64_t key, char number[24]);
void dp_pairs_clear(struct dp_pairs *pairs); /* accepts {0} */

/* Whether a text that begins with these bytes can only be lists: only integers, over four in some line, and
 * not the same number in each. */
bool dp_pairs_are_lists(const unsigned char *bytes, size_t len);

#endif
