/* Criteo's click logs: label, 13 integers and 26 categories, separated by tabs; all but the label may be
 * empty. An integer x becomes sign(x) log(1 + |x|); an empty one is 0 in a column, and no entry in a list of
 * features. Without a given scale columns are divided by 10: such logarithms are 0 to 15, far from the mean 0
 * and variance 1 that the initial weights of layers are made for. Layers on such large inputs change much
 * in their first steps, and asynchronous workers add the same steps several times. So all units of a narrow
 * layer with a ReLU may end below 0 and stay there. */
#include "worker/read/columns.h"

#include "worker/read/lines.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define INTEGERS   13u
#define CATEGORIES 26u
#define CELLS      (1 + INTEGERS + CATEGORIES)
#define LOOK_LINES 100u
#define SALT       0x43726974656f0000u /* with a column's number */

static double squeeze(double x)
{
    return x < 0 ? -log1p(-x) : log1p(x);
}

struct clicks {
    struct dp_columns rows;
    uint32_t cells;          /* of a line, as in the first: one fewer without labels; 0: not known yet */
    struct dp_name_set *set; /* the lines are read for the names of categories only; or NULL */
};

/* Splits a line into cells[CELLS]. */
static enum dp_status take_apart(struct clicks *clicks, const char *at, const char *end,
                                 struct dp_cell *cells, struct dp_error *err)
{
    uint32_t found = 1;
    for (const char *p = at; p < end; p++)
        found += *p == '\t';
    if (clicks->cells == 0)
        clicks->cells = clicks->rows.options->scored && found == CELLS - 1 ? CELLS - 1 : CELLS;
    if (found != clicks->cells)
        return dp_fail(err, DP_DATA,
                       "expected %u columns (%s13 integers, 26 categories, separated by tabs%s), found %u%s",
                       clicks->cells, clicks->cells == CELLS ? "label, " : "",
                       clicks->cells == CELLS ? "" : ", without a label as in the first line", found,
                       found < clicks->cells ? ": empty fields at the end need their tabs, too" : "");
    cells[0] = (struct dp_cell){at, at};
    for (uint32_t i = CELLS - found; i < CELLS; i++) {
        const char *tab = i + 1 < CELLS ? memchr(at, '\t', (size_t)(end - at)) : end;
        cells[i] = (struct dp_cell){at, tab};
        at = tab + 1;
    }
    return DP_OK;
}

static enum dp_status name_categories(const struct clicks *clicks, const struct dp_cell *cells,
                                      struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; st == DP_OK && i < CATEGORIES; i++) {
        const struct dp_cell *cell = &cells[1 + INTEGERS + i];
        char column[8];
        (void)snprintf(column, sizeof column, "C%u", i + 1);
        const struct dp_columns_name of = {column, i, INTEGERS + i, SALT + INTEGERS + i};
        st = dp_columns_name_category(clicks->rows.options, &of, cell->at, (size_t)(cell->end - cell->at),
                                      clicks->set, err);
    }
    return st == DP_OK && clicks->set->cut ? dp_fail(err, DP_STOPPING, "enough") : st;
}

static enum dp_status add_line(void *self, const char *at, const char *end, uint64_t line,
                               struct dp_error *err)
{
    struct clicks *clicks = self;
    struct dp_columns *c = &clicks->rows;
    struct dp_cell cells[CELLS];
    (void)line;
    if (at == end)
        return DP_OK;
    enum dp_status st = take_apart(clicks, at, end, cells, err);
    if (st == DP_OK && clicks->set)
        return name_categories(clicks, cells, err);
    if (st == DP_OK)
        st = dp_columns_row(c, err);
    if (st == DP_OK)
        st = dp_columns_label(c, cells[0].at, cells[0].end, err);
    for (uint32_t i = 0; st == DP_OK && i < INTEGERS; i++) {
        st = dp_columns_number(c, i, cells[1 + i].at, cells[1 + i].end, squeeze, err);
        if (st != DP_OK)
            st = dp_wrap(err, st, "integer %u", i + 1);
    }
    for (uint32_t i = 0; st == DP_OK && i < CATEGORIES; i++) {
        const struct dp_cell *cell = &cells[1 + INTEGERS + i];
        dp_columns_category(c, i, SALT + INTEGERS + i, cell->at, (size_t)(cell->end - cell->at));
    }
    return st;
}

static enum dp_status read_lines(struct clicks *clicks, struct dp_unpack *unpack, struct dp_error *err)
{
    dp_unpack_check_text(unpack);
    return dp_lines_of(unpack, false, (struct dp_lines_sink){add_line, clicks}, err);
}

static enum dp_status load(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                           struct dp_content *out, struct dp_error *err)
{
    struct clicks clicks = {0};
    uint64_t salt[INTEGERS];
    for (uint32_t i = 0; i < INTEGERS; i++)
        salt[i] = SALT + i;
    enum dp_status st = dp_columns_begin(&clicks.rows, options, out,
                                         &(struct dp_columns_count){INTEGERS, CATEGORIES, 0}, err);
    if (st == DP_OK)
        st = read_lines(&clicks, unpack, err);
    return st == DP_OK ? dp_columns_end(&clicks.rows, salt, err) : st;
}

static enum dp_status names(const struct dp_dataset_options *options, const struct dp_content *content,
                            struct dp_name_set *set, struct dp_error *err)
{
    struct clicks clicks = {.rows.options = options, .set = set};
    struct dp_unpack *unpack = NULL;
    enum dp_status st = DP_OK;
    (void)content;
    set->max = DP_COLUMNS_NAMES_MAX;
    for (uint32_t i = 0; st == DP_OK && i < INTEGERS; i++) {
        char column[8];
        (void)snprintf(column, sizeof column, "I%u", i + 1);
        st = dp_columns_name_number(options, &(struct dp_columns_name){column, i, i, SALT + i}, set, err);
    }
    if (st == DP_OK)
        st = dp_unpack_open_text(options->path, options->encoding, &unpack, err);
    if (st == DP_OK)
        st = read_lines(&clicks, unpack, err);
    dp_unpack_close(&unpack);
    return st == DP_STOPPING ? DP_OK : st;
}

/* As many columns in one of the first lines, and at least the integers in all: the tabs of empty fields at
 * the end may be cut. */
static bool begins(const struct dp_dataset_options *options, const unsigned char *bytes, size_t len)
{
    uint32_t cells = 1, lines = 0, fit = 0, near = 0;
    for (size_t i = 0; i <= len && lines < LOOK_LINES; i++) {
        if (i < len && bytes[i] != '\n') {
            cells += bytes[i] == '\t';
            continue;
        }
        if (i == len && lines > 0) /* it may be cut */
            break;
        fit += cells == CELLS || (options->scored && cells == CELLS - 1);
        near += cells > INTEGERS && cells <= CELLS;
        lines++;
        cells = 1;
    }
    return 2 * fit > lines || (fit > 0 && near == lines);
}

const struct dp_format dp_format_criteo = {.name = "criteo",
                                           .holds = "lines of a label, 13 integers and 26 categories",
                                           .forms = 1u << DP_FORM_SPARSE | 1u << DP_FORM_FIELDS |
                                                    1u << DP_FORM_TABLES,
                                           .begins = begins,
                                           .decodes_slowly = true,
                                           .columns_scale = 0.1,
                                           .load = load,
                                           .names = names,
                                           .shape = dp_columns_shape,
                                           .fill = dp_columns_fill};
