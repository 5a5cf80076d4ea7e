/* CSV (RFC 4180): its first line has the names; commas, semicolons or tabs part the cells, whichever the first line has most of. */
#include "worker/read/lines.h"
#include "worker/read/number.h"
#include "worker/read/tabular.h"

#include <string.h>

struct csv {
    struct dp_tabular_sink sink;
    struct dp_csv_record record;
    size_t columns; /* 0: the header was not read yet */
    char separator;
};

static enum dp_status add_line(void *self, const char *at, const char *end, uint64_t line,
                               struct dp_error *err)
{
    struct csv *csv = self;
    bool header = csv->columns == 0;
    if (at == end)
        return DP_OK;
    if (header)
        csv->separator = dp_csv_record_separator(at, end);
    enum dp_status st = dp_csv_record_split(&csv->record, csv->separator, at, end, err);
    if (st != DP_OK)
        return st;
    const struct dp_tabular_record record = {csv->record.cells, csv->record.count, line};
    if (header) {
        csv->columns = record.count;
        return csv->sink.names(csv->sink.self, &record, err);
    }
    if (record.count != csv->columns)
        return dp_fail(err, DP_DATA, "expected %zu columns, as the header has, found %zu", csv->columns,
                       record.count);
    return csv->sink.next(csv->sink.self, &record, err);
}

static enum dp_status records(struct dp_unpack *unpack, struct dp_tabular_sink sink, struct dp_error *err)
{
    struct csv csv = {.sink = sink};
    dp_unpack_check_text(unpack);
    enum dp_status st = dp_lines_of(unpack, true, (struct dp_lines_sink){add_line, &csv}, err);
    dp_csv_record_clear(&csv.record);
    return st;
}

/* A line of two names or more, none of them a number. */
static bool begins(const unsigned char *bytes, size_t len)
{
    struct dp_csv_record record = {0};
    const char *at = (const char *)bytes, *end = memchr(bytes, '\n', len);
    end = end ? end : at + len;
    end -= end > at && end[-1] == '\r';
    bool names = !memchr(at, '\0', (size_t)(end - at)) &&
                 dp_csv_record_split(&record, dp_csv_record_separator(at, end), at, end, NULL) == DP_OK &&
                 record.count >= 2;
    for (size_t i = 0; names && i < record.count; i++) {
        struct dp_cell cell = dp_cell_trim(record.cells[i]);
        names = cell.at < cell.end && dp_number_end(cell.at, cell.end) != cell.end;
    }
    dp_csv_record_clear(&record);
    return names;
}

const struct dp_tabular dp_tabular_csv = {.name = "csv", .begins = begins, .records = records};
