/* Goal    figures of a set survive as text; rubbish in their place is refused. */
#include "tests/lib/test.h"
#include "worker/telemetry/tested.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void tested_figures_come_back(void **state)
{
    struct dp_tested have[4] = {
        [0] = {.known = true, .figures = {10, 0.5, 0.25, (double)NAN, (double)NAN, 0.75, 0.5}},
        [2] = {.known = true, .figures = {20, 1e-300, (double)NAN, 1.0, 3.0, (double)NAN, (double)NAN}},
    };
    struct dp_figures *ranked = &have[0].figures;
    ranked->ranked_users = 7, ranked->ranked_items = 90;
    for (int t = 0; t < 2; t++)
        ranked->top[t] = 10 + (uint32_t)t, ranked->recall[t] = 0.1 + t, ranked->ndcg[t] = 0.2 + t;
    struct dp_tested back[4] = {0};
    char *text = dp_tested_pack(have, 4);
    assert_non_null(text);
    assert_true(dp_tested_unpack(text, strlen(text), 4, back));
    assert_true(back[0].known && !back[1].known && back[2].known && !back[3].known);
    assert_true(back[0].figures.examples == 10 && back[0].figures.loss == 0.5);
    assert_true(back[0].figures.accuracy == 0.25 && isnan(back[0].figures.auc));
    assert_true(back[2].figures.loss == 1e-300 && back[2].figures.rmse == 3.0);
    assert_true(back[0].figures.hr10 == 0.75 && back[0].figures.ndcg10 == 0.5 && isnan(back[2].figures.hr10));
    for (int t = 0; t < 2; t++)
        assert_true(back[0].figures.top[t] == ranked->top[t] &&
                    back[0].figures.recall[t] == ranked->recall[t] &&
                    back[0].figures.ndcg[t] == ranked->ndcg[t]);
    assert_true(back[0].figures.ranked_users == 7 && back[0].figures.ranked_items == 90);
    assert_true(back[2].figures.ranked_users == 0);
    assert_false(dp_tested_unpack(text, strlen(text), 2, back)); /* of fewer epochs */
    for (size_t n = 0; n < strlen(text); n++)
        assert_false(dp_tested_unpack(text, n, 4, back));
    assert_false(dp_tested_unpack("[[1]]", 5, 4, back));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tested_figures_come_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
