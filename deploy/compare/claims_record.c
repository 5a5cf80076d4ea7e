#include "common/base/json.h"
#include "deploy/compare/claims.h"

#include <math.h>

static json_t *interval_json(const struct dp_interval *interval)
{
    json_t *out = json_pack("{s:I}", "n", (json_int_t)interval->n);
    dp_json_set_real(out, "mean", interval->mean);
    dp_json_set_real(out, "sd", interval->sd);
    dp_json_set_real(out, "low", interval->low);
    dp_json_set_real(out, "high", interval->high);
    return out;
}

/* Adds what the test says. */
static json_t *claim_json(const struct dp_claim *claim, bool is_claimed)
{
    json_t *out = interval_json(&claim->difference);
    if (claim->ratio.n > 0)
        (void)json_object_set_new(out, "ratio", interval_json(&claim->ratio));
    (void)json_object_set_new(out, "test", json_string(claim->by_count ? "fisher" : "t"));
    dp_json_set_real(out, "p", claim->p);
    dp_json_set_real(out, "level", 1 - claim->alpha);
    (void)json_object_set_new(out, "scale", json_string(dp_scale_name(&claim->scale)));
    if (is_claimed)
        (void)json_object_set_new(out, "shown", json_boolean(claim->shown));
    return out;
}

static json_t *quantity_json(const json_t *root, const struct dp_claims *claims, size_t mode,
                             enum dp_comparison_quantity quantity)
{
    const struct dp_scale scale = dp_scale_of(root, quantity);
    struct dp_interval own = dp_statistics_mode(root, mode, quantity);
    json_t *out = interval_json(&own), *difference = json_null();
    (void)json_object_set_new(out, "scale", json_string(dp_scale_name(&scale)));
    if (mode > 0) {
        struct dp_claim claim = dp_claims_find(claims, quantity, mode, 0);
        bool is_claimed = claim.alpha > 0;
        if (!is_claimed)
            claim = dp_claim_plain(root, quantity, mode, 0);
        difference = claim_json(&claim, is_claimed);
    }
    (void)json_object_set_new(out, "difference", difference);
    return out;
}

static json_t *mode_json(const json_t *root, const struct dp_claims *claims, size_t mode)
{
    json_t *out = json_pack("{s:s}", "mode", dp_comparison_mode(root, mode));
    size_t good = dp_ending_count(root, mode, DP_COMPARISON_GOOD);
    dp_json_set_u64(out, "runs", good);
    dp_json_set_u64(out, "diverged", dp_ending_count(root, mode, DP_COMPARISON_DIVERGED));
    dp_json_set_u64(out, "failed", dp_ending_count(root, mode, DP_COMPARISON_FAILED));
    for (int q = 0; q < DP_QUANTITIES; q++) {
        json_t *one = quantity_json(root, claims, mode, (enum dp_comparison_quantity)q);
        if (q == DP_QUANTITY_SECONDS_TO || q == DP_QUANTITY_EXAMPLES_TO)
            dp_json_set_u64(one, "of", good); /* runs */
        (void)json_object_set_new(out, dp_comparison_quantity_key((enum dp_comparison_quantity)q), one);
    }
    return out;
}

static json_t *family_json(const json_t *root, const struct dp_claims *claims)
{
    json_t *out = json_array();
    for (size_t i = 0; i < claims->count; i++) {
        const struct dp_claim *claim = &claims->claim[i];
        json_t *one = claim_json(claim, true);
        (void)json_object_set_new(one, "quantity", json_string(dp_comparison_quantity_key(claim->quantity)));
        (void)json_object_set_new(one, "mode", json_string(dp_comparison_mode(root, claim->mode)));
        (void)json_object_set_new(one, "beside", json_string(dp_comparison_mode(root, claim->beside)));
        (void)json_array_append_new(out, one);
    }
    return out;
}

enum dp_status dp_comparison_count(json_t *root, struct dp_error *err)
{
    struct dp_claims claims = {0};
    enum dp_status st = dp_claims_of(root, &claims, err);
    if (st != DP_OK)
        return st;
    json_t *all = json_array(), *family = family_json(root, &claims);
    bool good = all && family;
    for (size_t m = 0; good && m < dp_comparison_modes(root); m++)
        good = json_array_append_new(all, mode_json(root, &claims, m)) == 0;
    good =
        good && json_object_set(root, "statistics", all) == 0 && json_object_set(root, "claims", family) == 0;
    json_decref(all);
    json_decref(family);
    dp_claims_clear(&claims);
    return good ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the statistics");
}
