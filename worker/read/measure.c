#include "worker/read/measure.h"

#include "common/base/bytes.h"
#include "worker/read/format.h"
#include "worker/read/tabular_header.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CLASSES_MAX ((uint32_t)1 << 24) /* integers that f32 has */
#define IDX_HEADER  16u

static enum dp_status count_header(const struct dp_dataset_options *options, struct dp_measure *out,
                                   struct dp_error *err)
{
    struct dp_tabular_header header = {0};
    enum dp_status st = dp_tabular_header_look(options, options->path, &header, err);
    for (uint32_t i = 0; st == DP_OK && i < header.schema.columns; i++) {
        out->numbers += header.schema.column[i].kind == DP_COLUMN_NUMBER;
        out->categories += header.schema.column[i].kind == DP_COLUMN_CATEGORY;
        out->lists += header.schema.column[i].kind == DP_COLUMN_LIST;
    }
    dp_tabular_header_clear(&header);
    return st;
}

static enum dp_status count_pixels(struct dp_unpack *unpack, struct dp_measure *out, struct dp_error *err)
{
    const unsigned char *bytes = NULL;
    size_t len = 0;
    enum dp_status st = dp_unpack_peek(unpack, &bytes, &len, err);
    if (st == DP_OK && len >= IDX_HEADER)
        out->numbers = (uint64_t)dp_load_u32be(bytes + 8) * dp_load_u32be(bytes + 12);
    return st;
}

/* Classes are 0 .. n-1, or 1 .. n. */
static enum dp_status count_classes(const struct dp_dataset_options *o, const struct dp_content *content,
                                    struct dp_measure *out, struct dp_error *err)
{
    struct dp_schema schema = {0};
    float least = INFINITY, most = 0;
    enum dp_status st = DP_OK;
    if (content->schema_len > 0)
        st = dp_schema_parse("the schema", content->schema, content->schema_len, &schema, err);
    for (uint64_t i = 0; i < content->examples; i++) {
        least = fminf(least, content->labels[i]);
        most = fmaxf(most, content->labels[i]);
    }
    bool from_one = o->label_base == DP_LABEL_BASE_AUTO && least >= 1;
    out->classes = schema.classes > 0 ? schema.classes : (uint64_t)most + !from_one;
    out->classes = out->classes < 2 ? 2 : out->classes;
    dp_schema_clear(&schema);
    return st;
}

static enum dp_status load(struct dp_dataset_options *o, const struct dp_format *format,
                           struct dp_unpack *unpack, struct dp_measure *out, struct dp_error *err)
{
    struct dp_content content = {0};
    bool named = format == &dp_format_tabular, pixels = format == &dp_format_idx;
    o->form = named ? DP_FORM_SPARSE : DP_FORM_DENSE;
    o->width = pixels ? (uint32_t)out->numbers : UINT32_MAX;
    o->classes = CLASSES_MAX;
    o->standardize = o->scale_labels = false;
    o->scale = 1;
    enum dp_status st = format->load(o, unpack, &content, err);
    for (uint64_t i = 0; st == DP_OK && !named && !pixels && i < content.offsets[content.examples]; i++)
        out->numbers = content.keys[i] >= out->numbers ? content.keys[i] + 1 : out->numbers;
    if (st == DP_OK && o->labels == DP_LABELS_CLASS)
        st = count_classes(o, &content, out, err);
    dp_content_clear(&content);
    return st;
}

enum dp_status dp_measure(const struct dp_dataset_options *options, struct dp_measure *out,
                          struct dp_error *err)
{
    struct dp_dataset_options o = *options;
    const struct dp_format *format = NULL;
    struct dp_unpack *unpack = NULL;
    *out = (struct dp_measure){0};
    enum dp_status st = dp_unpack_open_text(o.path, o.encoding, &unpack, err);
    if (st == DP_OK)
        st = dp_format_choose(&o, unpack, &format, err);
    if (st == DP_OK)
        (void)snprintf(out->format, sizeof out->format, "%s", format->name);
    if (st == DP_OK && format == &dp_format_criteo)
        out->numbers = 13, out->categories = 26;
    else if (st == DP_OK && format == &dp_format_tabular && o.label && o.label[0])
        st = count_header(&o, out, err);
    else if (st == DP_OK && format == &dp_format_idx)
        st = count_pixels(unpack, out, err);
    if (st == DP_OK && o.form == DP_FORM_DENSE && out->categories + out->lists == 0 &&
        (o.labels == DP_LABELS_CLASS || format == &dp_format_libsvm))
        st = load(&o, format, unpack, out, err);
    dp_unpack_close(&unpack);
    return st;
}
