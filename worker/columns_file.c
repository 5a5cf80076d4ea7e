#include "worker/columns_file.h"

#include "common/env/whole.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool says(const char *path, const char *text)
{
    FILE *file = fopen(path, "re");
    int c = EOF;
    if (!file)
        return false;
    while ((c = fgetc(file)) != EOF && *text && c == (unsigned char)*text)
        text++;
    bool same = c == EOF && !*text && !ferror(file);
    (void)fclose(file);
    return same;
}

enum dp_status dp_columns_file_put(const char *text, const char *path, struct dp_error *err)
{
    struct dp_whole file;
    if (says(path, text))
        return DP_OK;
    enum dp_status st = dp_whole_open(path, &file, err);
    if (st != DP_OK)
        return st;
    (void)fputs(text, file.stream);
    return dp_whole_commit(&file, err);
}

static bool same_texts(const struct dp_schema *a, const struct dp_schema *b)
{
    bool same = a->classes == b->classes;
    for (uint32_t i = 0; same && i < a->classes; i++)
        same = strcmp(a->class_text[i], b->class_text[i]) == 0;
    return same;
}

/* Texts against numbers may mean the same: that is the user's to know. */
static enum dp_status compare(const struct dp_schema *before, const struct dp_schema *now, bool counted,
                              struct dp_error *err)
{
    char a[160], b[160];
    if (before->classes > 0 && now->classes > 0 && !same_texts(before, now)) {
        dp_schema_labels_text(before, false, before->classes, a, sizeof a);
        dp_schema_labels_text(now, false, now->classes, b, sizeof b);
        return dp_fail(err, DP_ARGUMENT,
                       "labels mean other classes than those that the weights were trained on: before: %s; "
                       "now: %s; "
                       "train on with data of the same labels, each in one example at least",
                       a, b);
    }
    if (before->classes > 0 || now->classes > 0 || before->label_base == now->label_base || counted)
        return DP_OK;
    return dp_fail(err, DP_ARGUMENT,
                   "the labels' class 0 was %" PRIu32 " in the data that the weights were trained on, and is "
                   "%" PRIu32 " in this: say which number it has (--label-base, data.label_base)",
                   before->label_base, now->label_base);
}

enum dp_status dp_columns_file_check(const struct dp_schema *now, bool counted, const char *path,
                                     struct dp_error *err)
{
    struct dp_schema before = {0};
    struct dp_error unheard = {0};
    if (dp_schema_read_file(path, &before, &unheard) != DP_OK)
        return DP_OK;
    enum dp_status st = compare(&before, now, counted, err);
    dp_schema_clear(&before);
    return st;
}
