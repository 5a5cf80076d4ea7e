/* Goal    The sum of a step is that of a plain loop over its pushes in order of rank, bit for bit, whatever the order in which they
 *         came; steps and pushes are found and dropped as step_buffer.h says; old weights are found by ascending keys; the floor.
 * Method  Random pushes to three tables, f32 and bf16, of 1 to 24 members: few cursors, and a heap of them; sums key by key against arrays. */
#include "server/steps/step_buffer.h"
#include "tests/lib/test.h"

#include "common/base/bf16.h"
#include "common/base/bytes.h"

#include <string.h>

#define KEYS    200u
#define DIM     3u
#define MEMBERS 24u

static uint64_t state_of_random;

static uint64_t draw(uint64_t below)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (state_of_random >> 33) % below;
}

static float draw_float(void)
{
    return ((float)draw(2000001) - 1000000) / 7777777;
}

static const float *plain_of(const struct dp_section *section, uint32_t i)
{
    static float wide[DIM];
    const char *at = (const char *)section->values + (size_t)i * DIM * dp_value_bytes(section->type);
    if (section->type == DP_BF16)
        dp_bf16_get(at, wide, DIM);
    else
        memcpy(wide, at, sizeof wide);
    return wide;
}

/* Rows of some of the tables 10, 20 and 30. */
static struct dp_buffered_push *draw_push(uint32_t rank, uint64_t step, struct dp_message **message)
{
    static struct dp_request request;
    const struct dp_record record = {
        .kind = DP_RECORD_KEPT_PUSH, .run = 1, .rank = rank, .step = step, .examples = draw(100)};
    request = (struct dp_request){.rate = 0.5f};
    *message = dp_message_new(6);
    for (uint32_t t = 1; t <= 3; t++) {
        uint32_t rows = (uint32_t)draw(KEYS / 2), n = 0;
        enum dp_value_type type = draw(2) ? DP_BF16 : DP_F32;
        struct dp_frame keys = dp_frame_new(KEYS * 8), values = dp_frame_new(KEYS * DIM * 4);
        for (uint64_t key = 0; key < KEYS && n < rows; key++)
            if (draw(3) == 0) {
                float row[DIM] = {draw_float(), draw_float(), n == 0 ? -0.0f : draw_float()};
                dp_store_u64le((char *)keys.data + (size_t)n * 8, key);
                char *to = (char *)values.data + (size_t)n * DIM * dp_value_bytes(type);
                if (type == DP_BF16)
                    dp_bf16_put(row, to, DIM);
                else
                    memcpy(to, row, sizeof row);
                n++;
            }
        dp_message_add(*message, keys);
        dp_message_add(*message, values);
        request.section[request.sections++] =
            (struct dp_section){.table = t * 10,
                                .rows = n,
                                .type = type,
                                .keys = keys.data,
                                .values = values.data,
                                .value_bytes = (size_t)n * DIM * dp_value_bytes(type)};
    }
    return dp_buffered_push_new(&request, &record, dp_message_bytes(*message));
}

static void keep(struct dp_step_buffer *kept, uint32_t rank, uint64_t step, uint64_t lsn)
{
    struct dp_message *message;
    struct dp_buffered_push *push = draw_push(rank, step, &message);
    assert_int_equal(dp_step_buffer_reserve(kept, push), DP_OK);
    dp_step_buffer_add(kept, &push, lsn, &message);
    assert_null(push);
    assert_null(message);
}

static void check_sum(const struct dp_buffered_step *step, uint32_t table)
{
    float wanted[KEYS][DIM], sum[DIM];
    bool there[KEYS] = {false};
    for (uint32_t p = 0; p < step->count; p++)
        for (uint32_t s = 0; s < step->push[p]->sections; s++) {
            const struct dp_section *section = &step->push[p]->section[s];
            float factor = (float)step->push[p]->examples / (float)step->examples;
            for (uint32_t i = 0; section->table == table && i < section->rows; i++) {
                uint64_t key = dp_load_u64le((const char *)section->keys + (size_t)i * 8);
                const float *plain = plain_of(section, i);
                for (uint32_t d = 0; d < DIM; d++) {
                    float product = factor * plain[d];
                    wanted[key][d] = there[key] ? wanted[key][d] + product : product;
                }
                there[key] = true;
            }
        }
    struct dp_buffer_sum of;
    uint64_t mixed;
    assert_int_equal(dp_buffer_sum_init(&of, step, table, DIM), DP_OK);
    for (uint64_t key = 0; key < KEYS; key++) {
        if (!there[key])
            continue;
        assert_true(dp_buffer_sum_next(&of, &mixed, sum));
        assert_int_equal(mixed, key);
        assert_memory_equal(sum, wanted[key], sizeof sum);
    }
    assert_false(dp_buffer_sum_next(&of, &mixed, sum));
    dp_buffer_sum_clear(&of);
}

static void test_sum(void **state)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct dp_step_buffer kept = {0};
        uint32_t members = 1 + (uint32_t)(seed % MEMBERS), order[MEMBERS];
        state_of_random = seed;
        for (uint32_t i = 0; i < members; i++) {
            uint32_t at = (uint32_t)draw(i + 1);
            order[i] = order[at];
            order[at] = i;
        }
        for (uint32_t i = 0; i < members; i++)
            keep(&kept, order[i], 5, 100 + i);
        const struct dp_buffered_step *step = dp_buffered_step(&kept, 1, 5);
        assert_int_equal(step->count, members);
        for (uint32_t i = 0; i < members; i++)
            assert_int_equal(step->push[i]->rank, i);
        if (step->examples > 0)
            for (uint32_t table = 10; table <= 40; table += 10) /* 40: nobody pushed to it */
                check_sum(step, table);
        dp_step_buffer_clear(&kept);
    }
}

static void close_step(struct dp_step_buffer *kept, uint64_t step, const uint64_t *keys, const float *weights,
                       uint32_t n)
{
    struct dp_message *message = dp_message_new(2);
    dp_message_add(message, dp_frame_copy(keys, n * 8));
    dp_message_add(message, dp_frame_copy(weights, n * 4));
    const uint32_t dims[] = {1};
    const struct dp_section section = {
        .table = 20, .rows = n, .keys = message->frame[0].data, .values = message->frame[1].data};
    dp_step_buffer_close(kept, 1, step, 1, &section, dims, &message);
}

static void test_steps_and_floor(void **state)
{
    struct dp_step_buffer kept = {0};
    const uint64_t keys[] = {3, 4, 9, 100, 101, 5000};
    const float weights[] = {1, 2, 3, 4, 5, 6};
    assert_true(dp_step_buffer_floor(&kept) == UINT64_MAX);
    keep(&kept, 1, 6, 11);
    assert_int_equal(dp_step_buffer_floor(&kept), 10);
    keep(&kept, 1, 7, 12); /* ahead of the other member */
    keep(&kept, 0, 6, 13);
    keep(&kept, 0, 7, 14);
    assert_int_equal(dp_buffered_step(&kept, 1, 6)->count, 2);
    assert_int_equal(dp_step_buffer_find(&kept, 1, 7, 1)->lsn, 12);
    assert_null(dp_step_buffer_find(&kept, 1, 7, 2));
    assert_null(dp_buffered_step(&kept, 2, 6));
    close_step(&kept, 6, keys, weights, 6);
    assert_null(dp_buffered_step(&kept, 1, 6));
    assert_int_equal(dp_step_buffer_floor(&kept), 10); /* the old weights of step 6 */
    close_step(&kept, 7, keys, weights, 6);
    assert_int_equal(dp_step_buffer_floor(&kept), 11);
    assert_int_equal(kept.bytes, 0);
    keep(&kept, 0, 8, 20);
    dp_step_buffer_forget_old(&kept);
    assert_int_equal(dp_step_buffer_floor(&kept), 19);
    assert_int_equal(dp_step_buffer_drop_below(&kept, 2, 0), 1); /* a later run */
    assert_true(dp_step_buffer_floor(&kept) == UINT64_MAX);
    dp_step_buffer_clear(&kept);
}

static void test_old_weights(void **state)
{
    struct dp_step_buffer kept = {0};
    uint64_t keys[300];
    float weights[300];
    for (uint32_t i = 0; i < 300; i++) {
        keys[i] = 10 + (uint64_t)i * i;
        weights[i] = (float)i;
    }
    keep(&kept, 0, 1, 5);
    close_step(&kept, 1, keys, weights, 300);
    for (uint64_t stride = 1; stride < 4000; stride = stride * 3 + 1) {
        uint32_t at = 0;
        for (uint64_t key = 0; key < 100000; key += stride) {
            uint32_t i = 0;
            while (i < 300 && keys[i] < key)
                i++;
            const float *found = dp_step_buffer_old_weights(&kept, 20, key, &at);
            assert_int_equal(found != NULL, i < 300 && keys[i] == key);
            if (found)
                assert_memory_equal(found, &weights[i], 4);
        }
    }
    uint32_t at = 0;
    assert_null(dp_step_buffer_old_weights(&kept, 10, keys[0], &at));
    dp_step_buffer_clear(&kept);
}

static void test_tables(void **state)
{
    struct dp_buffered_tables tables = {0};
    struct dp_section section[3] = {
        {.table = 7, .rows = 3}, {.table = 2, .rows = 1}, {.table = 9, .rows = 0}};
    dp_buffered_tables_add(&tables, 3, section);
    dp_buffered_tables_add(&tables, 3, section);
    assert_int_equal(tables.count, 2);
    assert_int_equal(tables.table[0], 2);
    assert_int_equal(tables.rows[0], 2);
    assert_int_equal(tables.table[1], 7);
    assert_int_equal(tables.rows[1], 6);
    for (uint32_t id = 100; id < 100 + 2 * DP_SECTIONS_MAX; id++) {
        section[0].table = id;
        dp_buffered_tables_add(&tables, 1, section);
    }
    assert_true(tables.count > DP_SECTIONS_MAX);
}

static void mark(bool *seen, uint32_t table, uint32_t sections, const struct dp_section *section)
{
    for (uint32_t s = 0; s < sections; s++)
        for (uint32_t i = 0; section[s].table == table && i < section[s].rows; i++)
            seen[dp_load_u64le((const char *)section[s].keys + (size_t)i * 8)] = true;
}

/* Of what is kept and one push more, which may be kept then or not; asked each time, or now and then. */
static void test_rows_counted_once(void **state)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct dp_step_buffer kept = {0};
        bool seen[4][KEYS] = {{false}};
        state_of_random = seed;
        for (uint32_t rank = 0; rank < MEMBERS; rank++) {
            struct dp_message *message;
            struct dp_buffered_push *push = draw_push(rank, 5, &message);
            struct dp_buffered_step *step = dp_buffered_step(&kept, 1, 5);
            for (uint32_t t = 1; step && t <= 3 && draw(seed % 4 + 1) == 0; t++) {
                bool with[KEYS];
                uint64_t rows = 0, want = 0;
                memcpy(with, seen[t], sizeof with);
                mark(with, t * 10, push->sections, push->section);
                for (uint32_t key = 0; key < KEYS; key++)
                    want += with[key];
                assert_int_equal(
                    dp_step_buffer_union_rows(step, t * 10, push->sections, push->section, &rows), DP_OK);
                assert_int_equal(rows, want);
            }
            if (draw(3) == 0) { /* refused */
                dp_buffered_push_free(&push);
                dp_message_free(&message);
                continue;
            }
            for (uint32_t t = 1; t <= 3; t++)
                mark(seen[t], t * 10, push->sections, push->section);
            assert_int_equal(dp_step_buffer_reserve(&kept, push), DP_OK);
            dp_step_buffer_add(&kept, &push, 100 + rank, &message);
        }
        dp_step_buffer_clear(&kept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum),
        cmocka_unit_test(test_steps_and_floor),
        cmocka_unit_test(test_old_weights),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_rows_counted_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
