#include "worker/read/labels.h"

#include "common/base/search.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TEXTS_MAX 65536u /* inserting a text moves those after it */

/* ---- numbers */

struct dp_label_rule dp_label_rule_of(const struct dp_dataset_options *options)
{
    return (struct dp_label_rule){
        .kind = options->labels, .classes = options->classes, .base = options->label_base};
}

static enum dp_status map_binary(struct dp_label_rule *rule, float label, float *out, struct dp_error *err)
{
    const bool found_out = rule->base == DP_LABEL_BASE_AUTO;
    if (!found_out && rule->base > 0) {
        *out = label - (float)rule->base;
        return *out == 0 || *out == 1
                   ? DP_OK
                   : dp_fail(err, DP_DATA,
                             "label %g: expected %" PRIu32 " or %" PRIu32 ", by the label base of %" PRIu32
                             " (--label-base, data.label_base)",
                             (double)label, rule->base, rule->base + 1, rule->base);
    }
    bool top = found_out && label == 2;
    rule->has_top = rule->has_top || top;
    rule->has_one = rule->has_one || label == 1;
    rule->has_zero = rule->has_zero || label == 0;
    rule->has_minus = rule->has_minus || label == -1;
    if ((label != 0 && label != 1 && label != -1 && !top) ||
        (rule->has_top && (rule->has_zero || rule->has_minus)))
        return dp_fail(err, DP_DATA,
                       "label %g: expected 0 or 1, or -1 or +1, or 1 or 2 in all of the file (mlp:... takes "
                       "several classes, fm:8,loss=squared any number)",
                       (double)label);
    if (rule->has_zero && rule->has_minus)
        return dp_fail(err, DP_DATA,
                       "label %g: the file has both -1 and 0: expected either 0 and 1 or -1 and +1",
                       (double)label);
    *out = top ? 2 : label == 1 ? 1 : 0;
    return DP_OK;
}

static enum dp_status map_class(struct dp_label_rule *rule, float label, float *out, struct dp_error *err)
{
    const bool found_out = rule->base == DP_LABEL_BASE_AUTO;
    float base = found_out ? 0 : (float)rule->base, top = base + (float)rule->classes;
    rule->has_zero = rule->has_zero || label == 0;
    rule->has_one = rule->has_one || label == 1;
    rule->has_top = rule->has_top || (found_out && label == top);
    /* The range is checked first: below 2^24 an f32 holds integers exactly. */
    if (!(label >= base && (label < top || (found_out && label == top))) || label != floorf(label) ||
        (rule->has_zero && rule->has_top))
        return dp_fail(err, DP_DATA,
                       "label %g: expected a class from %g to %g%s; --label-base (data.label_base) sets the "
                       "number of class 0",
                       (double)label, (double)base, (double)top - 1,
                       found_out ? ", or from 1 in all of the file" : "");
    *out = label == base ? 0 : label - base; /* -0 is class 0 */
    return DP_OK;
}

enum dp_status dp_label_map(struct dp_label_rule *rule, float label, float *out, struct dp_error *err)
{
    switch (rule->kind) {
    case DP_LABELS_BINARY:
        return map_binary(rule, label, out, err);
    case DP_LABELS_CLASS:
        return map_class(rule, label, out, err);
    case DP_LABELS_ANY:
    case DP_LABELS_NONE:
        break;
    }
    *out = label;
    return DP_OK;
}

enum dp_status dp_label_settle(const struct dp_label_rule *rule, float *labels, uint64_t count,
                               uint32_t *base, struct dp_error *err)
{
    uint32_t top = rule->kind == DP_LABELS_BINARY ? 2 : rule->classes;
    *base = rule->base == DP_LABEL_BASE_AUTO ? rule->has_top : rule->base;
    if (rule->kind == DP_LABELS_ANY)
        *base = 0;
    if (rule->kind == DP_LABELS_ANY || rule->base != DP_LABEL_BASE_AUTO || !rule->has_top)
        return DP_OK;
    if (!rule->has_one)
        return dp_fail(err, DP_DATA,
                       "there are labels of %" PRIu32
                       ", but of neither 0 nor 1: set the number of class 0 (--label-base, data.label_base)",
                       top);
    for (uint64_t i = 0; i < count; i++)
        labels[i] -= 1;
    return DP_OK;
}

/* ---- texts */

static const char *const words[][2] = {{"no", "yes"}, {"false", "true"}, {"f", "t"}, {"n", "y"}};
#define WORDS (sizeof words / sizeof words[0])

/* The pair of words that has the cell's word; *which: 0 or 1. NULL for any other text. */
static const char *const *word_of(struct dp_cell cell, int *which)
{
    size_t len = (size_t)(cell.end - cell.at);
    for (size_t i = 0; i < WORDS; i++)
        for (*which = 0; *which < 2; ++*which)
            if (strlen(words[i][*which]) == len && strncasecmp(words[i][*which], cell.at, len) == 0)
                return words[i];
    return NULL;
}

static struct dp_cell canonical(enum dp_labels kind, struct dp_cell cell)
{
    int which;
    const char *const *pair = kind == DP_LABELS_BINARY ? word_of(cell, &which) : NULL;
    return pair ? dp_cell_of(pair[which]) : cell;
}

struct sought {
    enum dp_labels kind;
    struct dp_cell cell; /* canonical */
};

/* By canonical texts, so that 'No' is class 0 next to 'yes'. */
static int compare(const struct sought *sought, const char *text)
{
    const struct dp_cell cell = sought->cell, with = canonical(sought->kind, dp_cell_of(text));
    size_t len = (size_t)(cell.end - cell.at), other = (size_t)(with.end - with.at),
           both = len < other ? len : other;
    int order = both ? memcmp(cell.at, with.at, both) : 0;
    return order ? order : (len > other) - (len < other);
}

static bool is_below(const void *at, const void *sought)
{
    return compare(sought, *(char *const *)at) > 0;
}

/* Finds the place of the text, or the place where it belongs. */
static uint32_t place_of(char *const *text, uint32_t count, enum dp_labels kind, struct dp_cell cell,
                         bool *there)
{
    const struct sought sought = {kind, canonical(kind, cell)};
    uint32_t place = (uint32_t)dp_lower_bound(text, count, sizeof *text, &sought, is_below);
    *there = place < count && compare(&sought, text[place]) == 0;
    return place;
}

#define LIST_BYTES 360

/* "'a' in line 2, 'b' in line 5, ..."; without lines: "'a', 'b', ..." */
static void list(char *const *text, const uint64_t *line, uint32_t count, char out[LIST_BYTES])
{
    size_t len = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < count && i < 4; i++) { /* of 76 bytes at most each */
        len += (size_t)snprintf(out + len, LIST_BYTES - len, "%s'%s'", i ? ", " : "",
                                dp_cell_show(dp_cell_of(text[i])).text);
        if (line)
            len += (size_t)snprintf(out + len, LIST_BYTES - len, " in line %" PRIu64, line[i]);
    }
    if (count > 4)
        (void)snprintf(out + len, LIST_BYTES - len, ", ...");
}

static enum dp_status add(struct dp_label_texts *texts, struct dp_cell cell, uint64_t line, uint32_t place,
                          struct dp_error *err)
{
    if (texts->count == texts->room) {
        uint32_t room = texts->room * 2 + 4;
        char **grown = realloc(texts->text, room * sizeof *grown);
        texts->text = grown ? grown : texts->text;
        uint64_t *lines = realloc(texts->line, room * sizeof *lines);
        texts->line = lines ? lines : texts->line;
        if (!grown || !lines)
            return dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " labels", room);
        texts->room = room;
    }
    char *copy = strndup(cell.at, (size_t)(cell.end - cell.at));
    if (!copy)
        return dp_fail(err, DP_NOMEM, "no memory for a label");
    memmove(texts->text + place + 1, texts->text + place, (texts->count - place) * sizeof *texts->text);
    memmove(texts->line + place + 1, texts->line + place, (texts->count - place) * sizeof *texts->line);
    texts->text[place] = copy;
    texts->line[place] = line;
    texts->count++;
    return DP_OK;
}

enum dp_status dp_label_see(struct dp_label_texts *texts, enum dp_labels kind, struct dp_cell cell,
                            uint64_t line, uint32_t max, struct dp_error *err)
{
    bool there;
    char before[LIST_BYTES] = "";
    uint32_t place = place_of(texts->text, texts->count, kind, cell, &there);
    if (there)
        return DP_OK;
    max = max < TEXTS_MAX ? max : TEXTS_MAX;
    if (texts->count < max)
        return add(texts, cell, line, place, err);
    list(texts->text, texts->line, texts->count, before);
    return dp_fail(err, DP_DATA, "label '%s' is one more than the %" PRIu32 " %s, after %s%s",
                   dp_cell_show(cell).text, max,
                   kind == DP_LABELS_BINARY ? "that two classes have" : "classes of the model", before,
                   kind == DP_LABELS_BINARY ? " (mlp:... takes several classes)" : "");
}

void dp_label_name(struct dp_label_texts *texts, struct dp_schema *schema)
{
    schema->class_text = texts->text;
    schema->classes = texts->count;
    free(texts->line);
    *texts = (struct dp_label_texts){0};
}

void dp_label_texts_clear(struct dp_label_texts *texts)
{
    for (uint32_t i = 0; i < texts->count; i++)
        free(texts->text[i]);
    free(texts->text);
    free(texts->line);
    *texts = (struct dp_label_texts){0};
}

enum dp_status dp_label_find(const struct dp_schema *schema, enum dp_labels kind, struct dp_cell cell,
                             float *out, struct dp_error *err)
{
    bool there;
    char known[LIST_BYTES] = "";
    uint32_t place = place_of(schema->class_text, schema->classes, kind, cell, &there);
    *out = (float)place;
    if (there)
        return DP_OK;
    list(schema->class_text, NULL, schema->classes, known);
    return dp_fail(err, DP_DATA, "label '%s': expected one of the training file's: %s",
                   dp_cell_show(cell).text, known);
}
