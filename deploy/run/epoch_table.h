/* Epoch table: epochs of a report, a line each, under a header that names its columns.
 *     {.file} -> add, add, ...
 * A metric that no epoch has had so far has no column. When it first appears, the header is printed again.
 * With a validation set the test set has no columns. A column has the digits that suit its first value.
 * Memory    Epochs are lent for the call. */
#ifndef DP_RUN_EPOCH_TABLE_H
#define DP_RUN_EPOCH_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define DP_EPOCH_COLUMNS_MAX 24

struct dp_epoch_table {
    FILE *file;
    uint32_t columns; /* bits: those seen; 0: there was no epoch yet */
    char name[DP_EPOCH_COLUMNS_MAX][24];
    int digits[DP_EPOCH_COLUMNS_MAX]; /* after the point, plus 1; 0: the column had no value yet */
};

/* Takes in the columns that an epoch needs, without a line; false: none is new. Then the header. */
bool dp_epoch_table_see(struct dp_epoch_table *table, const json_t *epoch);
void dp_epoch_table_head(const struct dp_epoch_table *table);
/* A line, behind a header if it needs a new column. */
void dp_epoch_table_add(struct dp_epoch_table *table, const json_t *epoch);

#endif
