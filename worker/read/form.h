/* Form: the groups, lists and columns (batch.h) in which a model takes its data. A file format supports some
 * forms; others are refused by name. A key of a group is the format's number or hash, mixed
 * (common/model/mix.h). Values are 1 if the file has none. */
#ifndef DP_READ_FORM_H
#define DP_READ_FORM_H

#include <stdint.h>

#define DP_FORM_USERS 0 /* groups and lists of PAIRS and TRIPLES */
#define DP_FORM_ITEMS 1
#define DP_FORM_OTHER 2 /* TRIPLES: the list of items to compare with */

enum dp_data_form {
    DP_FORM_SPARSE, /* list 0 of group 0: any number of (key, value) an example */
    DP_FORM_DENSE,  /* `width` columns */
    DP_FORM_PAIRS, /* list 0 of group 0: a user; list 1 of group 1: an item. Label 1: an interaction; else 0 */
    DP_FORM_TRIPLES, /* the same; and list 2 of group 1: an item without an interaction. No labels */
    DP_FORM_WORDS,   /* list 0 of group 0: a word, or none; list 1 of group 1: words near it (values above 0)
                      and sampled
                      ones (below). No labels */
    DP_FORM_FIELDS,  /* `width` columns; list 0 of group 0: a key for each of `fields` categories */
    DP_FORM_TABLES,  /* the same, but field f is list f of a group f of its own */
    DP_FORM_WINDOWS, /* list 0 of group 0: `fields` tokens in sequence; label: the next one's class */
    DP_FORMS
};

/* "pairs of user and item", for messages */
static inline const char *dp_form_text(enum dp_data_form form)
{
    static const char *const texts[DP_FORMS] = {
        [DP_FORM_SPARSE] = "lists of features",
        [DP_FORM_DENSE] = "columns",
        [DP_FORM_PAIRS] = "pairs of user and item",
        [DP_FORM_TRIPLES] = "triples of user, item and another item",
        [DP_FORM_WORDS] = "words of a text",
        [DP_FORM_FIELDS] = "columns and categories",
        [DP_FORM_TABLES] = "columns and categories with tables of their own",
        [DP_FORM_WINDOWS] = "windows of tokens",
    };
    return (unsigned)form < DP_FORMS ? texts[form] : "unknown data";
}

#endif
