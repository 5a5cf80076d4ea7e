/* Tabular: a file of named columns, whatever its format: the columns' names, then record after record, as cells. Private to this room.
 *     records -> names(record), next(record), next(record), ...
 * A new format is a file formats/tabular_<name>.c with one struct dp_tabular, its line here and in tabular.c's table.
 * Promise   A record has a cell for each name; a record without any cell is left out.
 * Thread    One at a time.
 * Memory    Records and cells are lent for that call only.
 * Failure   What a callback returns, with file and line before its text; DP_DATA for a record that the format does not allow; DP_NOMEM. */
#ifndef DP_READ_TABULAR_H
#define DP_READ_TABULAR_H

#include "worker/read/csv_record.h"
#include "worker/read/dataset.h"
#include "worker/read/unpack.h"

struct dp_tabular_record {
    const struct dp_cell *cells;
    size_t count;
    uint64_t line; /* where the record begins */
};

struct dp_tabular_sink {
    enum dp_status (*names)(void *self, const struct dp_tabular_record *record, struct dp_error *err);
    enum dp_status (*next)(void *self, const struct dp_tabular_record *record, struct dp_error *err);
    void *self;
};

struct dp_tabular {
    const char *name; /* for options.format */
    /* Whether a file with these first bytes may have this format. */
    bool (*begins)(const unsigned char *bytes, size_t len);
    enum dp_status (*records)(struct dp_unpack *unpack, struct dp_tabular_sink sink, struct dp_error *err);
};

extern const struct dp_tabular dp_tabular_csv;

/* By name; NULL: none. */
const struct dp_tabular *dp_tabular_named(const char *name);
/* ", csv, ...": all names, for messages. Returns the length of the text. */
size_t dp_tabular_list(char *out, size_t size);
/* By the first bytes; NULL: none. */
const struct dp_tabular *dp_tabular_begins(const unsigned char *bytes, size_t len);

/* Visits all records of a file, by the format of this name or, without a known one, of its first bytes (else CSV). */
enum dp_status dp_tabular_records(const char *format, struct dp_unpack *unpack, struct dp_tabular_sink sink,
                                  struct dp_error *err);
/* The same of a file that is opened for it, by the format and encoding of the options. */
enum dp_status dp_tabular_read(const struct dp_dataset_options *options, const char *path,
                               struct dp_tabular_sink sink, struct dp_error *err);

#endif
