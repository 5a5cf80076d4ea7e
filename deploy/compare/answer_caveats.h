/* Answer caveats: the reservations about a comparison's answer (compare_answer.h): rates at the edge of
 * those that were tried, a loss that went up, trainings too short to have a time.
 * put_edges and put_losses write complete sentences, a space before each, or nothing; put_short begins the
 * answer. root: of a comparison. */
#ifndef DP_COMPARE_ANSWER_CAVEATS_H
#define DP_COMPARE_ANSWER_CAVEATS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Modes whose rate is the least or the greatest that --lr-grid tried. */
void dp_caveats_put_edges(const json_t *root, FILE *to);
/* Modes that ended well by the metric, and with a loss that is far above the one of the best constant. */
void dp_caveats_put_losses(const json_t *root, FILE *to);
/* The trainings, or their times to the target, end within about a second. */
bool dp_caveats_are_short(const json_t *root);
/* The most samples that a training of a mode that ended well has, if that is too few to place a target in time; else 0. */
size_t dp_caveats_few_samples(const json_t *root);
void dp_caveats_put_short(const json_t *root, FILE *to);

#endif
