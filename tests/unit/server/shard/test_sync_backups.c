/* Goal    With backup members a step closes without up to so many of them, whatever crashes and whenever: it takes each push that was
 *         answered as taken and none that was dropped, and nothing shows a close that a crash could take back.
 * Method  The members of sync_bed.h, some of which stay behind for a while. */
#include "tests/unit/server/shard/sync_bed.h"

#include <string.h>

#define ALL 0xfu

/* For each step some stay behind: as many as there are backups, or fewer; then all come as far. */
static void train(struct sync *s, uint64_t seed, uint64_t steps)
{
    uint32_t all = (1u << s->members) - 1;
    for (uint64_t step = 0; step < steps; step++) {
        uint64_t random = (seed * 31 + step * 7 + 3) * UINT64_C(0x9e3779b97f4a7c15);
        uint32_t behind = 0;
        for (uint32_t b = 0; b < s->backups; b++)
            behind |= 1u << (random >> (8 + 8 * b)) % s->members;
        sync_let(s, all & ~behind, step + 1);
        if (dp_sim_disk_is_off(s->bed.host.sim))
            return;
    }
    sync_train(s, steps);
}

static void test_closes_without_some(void **state)
{
    (void)state;
    for (uint32_t members = 2; members <= 4; members++)
        for (uint32_t backups = 1; backups < members; backups++) {
            struct sync *s =
                sync_new_with_backups(members, backups, SYNC_STEPS, members, DP_DURABILITY_MACHINE);
            train(s, members, SYNC_STEPS);
            sync_check(s, SYNC_STEPS);
            assert_int_equal(bed_counter(&s->bed, "steps_closed"), SYNC_STEPS);
            assert_true(bed_counter(&s->bed, "pushes_dropped") >= SYNC_STEPS / 2);
            sync_leave(s);
            assert_false(sync_restart(s));
            sync_check(s, SYNC_STEPS);
            sync_free(s);
        }
}

struct how {
    uint32_t members, backups;
    enum dp_durability durability;
    enum dp_sim_survival survival;
    bool with_workers;
    bool writes_back;
};

/* As test_sync.c does. False: training ended before. */
static bool crash_at(const struct how *how, uint64_t operation)
{
    struct sync *s = sync_new_with_backups(how->members, how->backups, 6, operation, how->durability);
    s->writes_back = how->writes_back;
    dp_sim_disk_cut_at(s->bed.host.sim, operation);
    train(s, operation, 6);
    bool cut = dp_sim_disk_is_off(s->bed.host.sim);
    if (cut) {
        sync_crash(s, how->survival, how->with_workers);
        train(s, operation + 1, 6);
    }
    dp_sim_disk_cut_at(s->bed.host.sim, 0);
    sync_check(s, 6);
    sync_leave(s);
    assert_false(sync_restart(s));
    sync_check(s, 6);
    sync_free(s);
    return cut;
}

static void crash_everywhere(uint32_t members, uint32_t backups, enum dp_durability durability,
                             enum dp_sim_survival survival, bool with_workers)
{
    for (uint32_t writes_back = 0; writes_back < 2; writes_back++) {
        const struct how how = {members, backups, durability, survival, with_workers, writes_back};
        uint64_t operation = 1;
        while (crash_at(&how, operation))
            operation++;
        assert_true(operation > 10);
    }
}

static void test_power_goes(void **state)
{
    (void)state;
    crash_everywhere(2, 1, DP_DURABILITY_MACHINE, DP_SIM_NOTHING, false);
    crash_everywhere(3, 1, DP_DURABILITY_MACHINE, DP_SIM_RANDOM, false);
    crash_everywhere(3, 2, DP_DURABILITY_MACHINE, DP_SIM_ALL, true);
    crash_everywhere(4, 1, DP_DURABILITY_MACHINE, DP_SIM_NOTHING, true);
}

static void test_process_dies(void **state)
{
    (void)state;
    crash_everywhere(3, 1, DP_DURABILITY_PROCESS, DP_SIM_PROCESS, false);
    crash_everywhere(3, 2, DP_DURABILITY_MACHINE, DP_SIM_PROCESS, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closes_without_some),
        cmocka_unit_test(test_power_goes),
        cmocka_unit_test(test_process_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
