/* Answer parts: the clauses of the first paragraph on a comparison's page (compare_answer.c).
 * Promise   Each writes to the stream of the answer; a statement about two modes is a claim that holds
 *           (claims.h), or the interval of one that is not shown, marked as such.
 * Memory    The caller's: claims are borrowed. */
#ifndef DP_COMPARE_ANSWER_PARTS_H
#define DP_COMPARE_ANSWER_PARTS_H

#include "deploy/compare/claims.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct dp_answer {
    const json_t *root;
    FILE *to;
    const struct dp_claims *claims;
    size_t fit[DP_COMPARISON_MODES_MAX], fits; /* modes that ended well with every seed, as they were given */
    size_t there[DP_COMPARISON_MODES_MAX],
        theres;    /* those of them that reached the target with every seed, the least mean first */
    bool any;      /* some run of them did */
    char goal[96]; /* "accuracy 0.85" */
    char rates
        [96]; /* under which rates the modes met, the grid's, or what a mode's name gives: ", at one rate for all modes"; "": one mode */
};

/* Without its modes. */
void dp_answer_init(struct dp_answer *a, const struct dp_claims *claims, FILE *to);
const char *dp_answer_count_word(size_t count, char out[24]);
void dp_answer_put_list(FILE *to, const json_t *root, const size_t *modes, size_t count);
bool dp_answer_put_of_whole(const struct dp_answer *a);
const char *dp_answer_own(const struct dp_answer *a, size_t mode, enum dp_comparison_quantity quantity,
                          char out[DP_COMPARE_INTERVAL_BYTES]);
/* "accuracy higher by 0.010 [0.004, 0.016]" */
#define DP_ANSWER_BYTES 256u
const char *dp_answer_by(const struct dp_answer *a, const struct dp_claim *claim, char out[DP_ANSWER_BYTES]);
void dp_answer_put_better(const struct dp_answer *a, const struct dp_claim *end);
void dp_answer_put_cost(const struct dp_answer *a, size_t mode, size_t beside, bool names);
void dp_answer_put_power(const struct dp_answer *a, const struct dp_claim *time, const struct dp_claim *end);
void dp_answer_put_coarse(const struct dp_answer *a, bool coarse);
bool dp_answer_is_few(const struct dp_answer *a);
/* Sentences: how each mode ended, compared with the first one. */
void dp_answer_put_ends(const struct dp_answer *a);

/* ---- reservations. put_edges and put_losses write complete sentences, a space before each, or nothing; put_short begins the answer.
 * root: of a comparison. */

/* Modes whose rate is the least or the greatest that --lr-grid tried. */
void dp_answer_put_edges(const json_t *root, FILE *to);
/* Modes that ended well by the metric, and with a loss that is far above the one of the best constant. */
void dp_answer_put_losses(const json_t *root, FILE *to);
/* The trainings, or their times to the target, end within about a second. */
bool dp_answer_is_short(const json_t *root);
/* The most samples that a training of a mode that ended well has, if that is too few to place a target in time; else 0. */
size_t dp_answer_few_samples(const json_t *root);
void dp_answer_put_short(const json_t *root, FILE *to);

#endif
