/* Training tables: the numbers of a training's page. open: they replace missing plots; else the tables of
 * plots are folded away. */
#ifndef DP_PAGES_TRAINING_TABLES_H
#define DP_PAGES_TRAINING_TABLES_H

#include "deploy/pages/training.h"

#include <stdio.h>

/* Each metric at the end, beside a constant's. */
void dp_training_table_final(const struct dp_training *training, FILE *to);
/* Of very many epochs some (epoch_choice.h). */
void dp_training_table_epochs(const struct dp_training *training, bool open, FILE *to);
void dp_training_table_histogram(const struct dp_training_histogram *histogram, const char *what,
                                 const char *bucket, FILE *to);
void dp_training_table_shares(const struct dp_training *training, FILE *to);
void dp_training_table_workers(const struct dp_training *training, FILE *to);

#endif
