/* Tabular header: names and kinds of the columns of a tabular training file. The file gives the names.
 * The first records give the kinds, and options.categories names more categories. Private to this room.
 *     look -> schema, list -> clear
 * Thread    One at a time.
 * Memory    The names.
 * Failure   DP_DATA naming file, line and the expected content. clear is allowed after a failed look. */
#ifndef DP_READ_TABULAR_HEADER_H
#define DP_READ_TABULAR_HEADER_H

#include "worker/read/dataset.h"
#include "worker/read/name_set.h"
#include "worker/read/tabular.h"

#define DP_TABULAR_UNITS 4

struct dp_tabular_header {
    const struct dp_dataset_options *options;
    struct dp_schema schema; /* names and kinds */
    struct dp_tabular_header_by {
        uint64_t line; /* of the first cell that made the column a category, and that cell; 0: it was named */
        struct dp_shown cell;
        uint32_t numbers, texts; /* cells of the column among the first lines, without missing ones */
        uint32_t lists;          /* of the texts: those with a '|' */
        uint32_t units;          /* of the texts: numbers with one of these signs or units */
        struct dp_tabular_unit {
            char before[16], after[16]; /* as in "$5" and "5 km" */
            bool thousands;             /* some have commas between thousands */
        } unit[DP_TABULAR_UNITS];
        uint32_t kinds;   /* of units */
        uint32_t rises;   /* numbers that are above the one before */
        uint32_t rounded; /* whole numbers that lose digits */
        double last;
        uint32_t codes;       /* whole numbers without a sign, of five digits or more and all of one length */
        size_t digits;        /* of the last number */
    } * by;                   /* [schema.columns] */
    struct dp_name_set names; /* of columns; their keys are the places */
    uint64_t looked;          /* records */
    uint64_t rows;            /* of the file, for notes; 0 until it was read */
};

enum dp_status dp_tabular_header_look(const struct dp_dataset_options *options, const char *path,
                                      struct dp_tabular_header *out, struct dp_error *err);
void dp_tabular_header_clear(struct dp_tabular_header *header);

/* "'city' by 'Rome' in line 2, ...", as many as there is room for. "": no category was found out. */
void dp_tabular_header_list(const struct dp_tabular_header *header, char *out, size_t size);
/* The signs or units that a column's first cells have, so that it became categories: *kinds of them. NULL:
 * some cell has none. */
const struct dp_tabular_unit *dp_tabular_header_units(const struct dp_tabular_header *header, uint32_t i,
                                                      uint32_t *kinds);
/* Whether most of the first cells of a category's column look like lists ("a|b"). */
bool dp_tabular_header_lists(const struct dp_tabular_header *header, uint32_t i);
/* Whether each of a column's first cells is above the one before, as numbers of rows, ids and times are. */
bool dp_tabular_header_rises(const struct dp_tabular_header *header, uint32_t i);
/* Whether most of a column's first cells are whole numbers that lose digits, as only ids have them. */
bool dp_tabular_header_rounds(const struct dp_tabular_header *header, uint32_t i);
/* Whether a column's first cells look like codes by their digits, as zip codes do: 10115, 20095. */
bool dp_tabular_header_codes(const struct dp_tabular_header *header, uint32_t i);
/* Of the first column that became categories although most of its cells are numbers: the cell that did it,
 * and what to do. "": there is none. */
void dp_tabular_header_doubt(const struct dp_tabular_header *header, const char *path, char *out,
                             size_t size);
/* A column's place among those of `names`, UINT32_MAX: there is none; and a new one's, which no column has
 * yet. */
uint32_t dp_tabular_place(struct dp_name_set *names, struct dp_cell name);
enum dp_status dp_tabular_add_name(struct dp_name_set *names, struct dp_cell name, uint32_t place,
                                   struct dp_error *err);

#endif
