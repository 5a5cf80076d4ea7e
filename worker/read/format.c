#include "worker/read/format.h"

#include "worker/read/tabular.h"

#include <stdio.h>
#include <string.h>

static const struct dp_format *const formats[] = {&dp_format_tabular, &dp_format_criteo, &dp_format_libsvm,
                                                  &dp_format_idx,     &dp_format_lists,  &dp_format_pairs,
                                                  &dp_format_text};

#define FORMATS (sizeof formats / sizeof formats[0])

static enum dp_status by_name(const struct dp_dataset_options *options, const struct dp_format **out,
                              struct dp_error *err)
{
    char names[128];
    size_t at = dp_tabular_list(names, sizeof names);
    *out = dp_tabular_named(options->format) ? &dp_format_tabular : NULL;
    for (size_t i = 0; i < FORMATS && !*out; i++) {
        if (formats[i] == &dp_format_tabular)
            continue;
        *out = strcmp(formats[i]->name, options->format) == 0 ? formats[i] : NULL;
        at += (size_t)snprintf(names + at, sizeof names - at, ", %s", formats[i]->name);
    }
    if (*out)
        return DP_OK;
    return dp_fail(err, DP_ARGUMENT, "format '%.32s' is not known: auto%s", options->format, names);
}

/* Whether the format fits the options, whatever the bytes. The model decides between pairs and text:
 * detection by bytes would silently train on names and ratings as words, or on a text of numbers as pairs. */
static bool may_be(const struct dp_format *format, const struct dp_dataset_options *options)
{
    if (format == &dp_format_tabular &&
        !(options->label && options->label[0])) /* no other format has a label column */
        return false;
    return format->forms & 1u << options->form;
}

/* Whether the first line has an "index:value". */
static bool has_features(const unsigned char *bytes, size_t len)
{
    for (size_t i = 1; i < len && bytes[i] != '\n'; i++)
        if (bytes[i] == ':' && bytes[i - 1] >= '0' && bytes[i - 1] <= '9')
            return true;
    return false;
}

/* The first format that fits. idx is detected by its magic number, which starts with two zero bytes, as no
 * text does. Four zero bytes are a hole that a crash left in a file. */
static const struct dp_format *by_content(const struct dp_dataset_options *options,
                                          const unsigned char *bytes, size_t len)
{
    const struct dp_format *last = NULL;
    static const unsigned char hole[4];
    if (len > 0 && bytes[0] == 0 && (len < sizeof hole || memcmp(bytes, hole, sizeof hole) != 0))
        return &dp_format_idx;
    /* So that the message asks for the label's name. */
    if (dp_format_tabular.forms & 1u << options->form && !has_features(bytes, len) &&
        dp_tabular_begins(bytes, len))
        return &dp_format_tabular;
    for (size_t i = 0; i < FORMATS; i++) {
        if (!may_be(formats[i], options) || formats[i] == &dp_format_idx)
            continue;
        if (!formats[i]->begins || formats[i]->begins(options, bytes, len))
            return formats[i];
        last = formats[i];
    }
    return last ? last : &dp_format_libsvm;
}

/* If no format is detected, a file that is read like another is taken to have its format: that reader says
 * best what is wrong. */
static const struct dp_format *like_training(const struct dp_dataset_options *options,
                                             const unsigned char *bytes, size_t len,
                                             const struct dp_format *found)
{
    if (!options->like || found != &dp_format_libsvm || has_features(bytes, len))
        return found;
    for (size_t i = 0; i < FORMATS; i++)
        if (strcmp(formats[i]->name, options->like->format) == 0 && may_be(formats[i], options))
            return formats[i];
    return found;
}

/* What a file may hold, for messages: "lines of ..., or images ...". */
static void wanted(const struct dp_dataset_options *options, const struct dp_format *named, char out[160])
{
    out[0] = '\0';
    for (size_t i = 0; i < FORMATS; i++) {
        size_t at = strlen(out);
        if (named ? formats[i] == named : may_be(formats[i], options))
            (void)snprintf(out + at, 160 - at, "%s%s", at ? ", or " : "", formats[i]->holds);
    }
}

enum dp_status dp_format_choose(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                                const struct dp_format **out, struct dp_error *err)
{
    const unsigned char *bytes = NULL;
    size_t len = 0;
    bool named = options->format && strcmp(options->format, "auto") != 0;
    enum dp_status st = dp_unpack_peek(unpack, &bytes, &len, err);
    if (st == DP_OK && named)
        st = by_name(options, out, err);
    if (st != DP_OK)
        return st;
    if (!named)
        *out = like_training(options, bytes, len, by_content(options, bytes, len));
    if (len == 0) {
        char what[160];
        wanted(options, named ? *out : NULL, what);
        return dp_fail(err, DP_DATA, "%s: is empty: expected %s", options->path, what);
    }
    if (options->encoding && *out == &dp_format_idx)
        return dp_fail(err, DP_ARGUMENT, "%s: images have no encoding: leave --encoding (data.encoding) out",
                       options->path);
    bool named_columns =
        options->ignore || options->id || options->missing || options->weight || options->lists;
    if (named_columns && *out != &dp_format_tabular)
        return dp_fail(
            err, DP_ARGUMENT,
            "%s: a file of format %s has no names of columns: leave --ignore, --id, --missing, --weight "
            "and --lists (data.ignore, data.id, data.missing, data.weight, data.lists) out",
            options->path, (*out)->name);
    if (options->labels_path && !(*out)->labels_apart)
        return dp_fail(err, DP_ARGUMENT,
                       "%s: is not an idx file and has its own labels: leave out the labels file '%s'",
                       options->path, options->labels_path);
    if (options->negatives_path && !(*out)->negatives_apart)
        return dp_fail(err, DP_ARGUMENT,
                       "%s: a file of format %s has no items to rank: leave out the file of negatives '%s'",
                       options->path, (*out)->name, options->negatives_path);
    for (int role = 0; role < DP_PAIRS_ROLES; role++)
        if (options->roles[role] && options->roles[role][0] && *out != &dp_format_pairs)
            return dp_fail(
                err, DP_ARGUMENT,
                "%s: a file of format %s has no columns of users, items, ratings and times: leave out "
                "--user, --item, --rating and --time (data.user, ...)",
                options->path, (*out)->name);
    if (!((*out)->forms & 1u << options->form))
        return dp_fail(
            err, DP_ARGUMENT,
            "%s: a file of format %s (%s) gives no %s, which the model takes: choose another model, "
            "or convert the file",
            options->path, (*out)->name, (*out)->holds, dp_form_text(options->form));
    return DP_OK;
}
