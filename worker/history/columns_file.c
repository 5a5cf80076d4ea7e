#include "worker/history/columns_file.h"

#include "common/env/atomic_file.h"

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
    struct dp_atomic_file file;
    if (says(path, text))
        return DP_OK;
    enum dp_status st = dp_atomic_file_open(path, &file, err);
    if (st != DP_OK)
        return st;
    (void)fputs(text, file.stream);
    return dp_atomic_file_commit(&file, err);
}

static bool same_texts(const struct dp_schema *a, const struct dp_schema *b)
{
    bool same = a->classes == b->classes;
    for (uint32_t i = 0; same && i < a->classes; i++)
        same = strcmp(a->class_text[i], b->class_text[i]) == 0;
    return same;
}

/* Texts on one side and numbers on the other may mean the same: the user has to know. */
static enum dp_status compare(const struct dp_schema *before, const struct dp_schema *now, bool counted,
                              struct dp_error *err)
{
    char a[160], b[160];
    if (before->classes > 0 && now->classes > 0 && !same_texts(before, now)) {
        dp_schema_labels_text(before, false, before->classes, a, sizeof a);
        dp_schema_labels_text(now, false, now->classes, b, sizeof b);
        return dp_fail(err, DP_ARGUMENT,
                       "the labels mean other classes than in the data that the weights were trained on "
                       "(then: %s; now: %s): "
                       "continue with data that has the same labels, each in at least one example",
                       a, b);
    }
    if (before->classes > 0 || now->classes > 0 || before->label_base == now->label_base || counted)
        return DP_OK;
    return dp_fail(err, DP_ARGUMENT,
                   "label %" PRIu32
                   " was class 0 in the data that the weights were trained on, label %" PRIu32
                   " is class 0 in this data: set the number of class 0 (--label-base, data.label_base)",
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

bool dp_columns_file_keeps_blanks(const char *path)
{
    struct dp_schema before = {0};
    struct dp_error unheard = {0};
    bool categories = false;
    if (!path[0] || dp_schema_read_file(path, &before, &unheard) != DP_OK)
        return false;
    for (uint32_t i = 0; i < before.columns; i++)
        categories |= before.column[i].kind == DP_COLUMN_CATEGORY;
    bool keeps = categories && !before.trimmed;
    dp_schema_clear(&before);
    return keeps;
}
