/* A journal that grows, runs out of its budget or of the disk, on the simulated disk; records and segments of every size. */
#include "tests/unit/server/journal/journal_places.h"

static enum dp_status (*whole_size)(void *self, struct dp_file *file, uint64_t *bytes, struct dp_error *err);

static enum dp_status half_size(void *self, struct dp_file *file, uint64_t *bytes, struct dp_error *err)
{
    enum dp_status st = whole_size(self, file, bytes, err);
    *bytes /= 2;
    return st;
}

/* A segment that a copy cut short is refused, however few of its records were written: it had its size before it had a page. */
static void a_segment_that_is_cut_short_is_refused(void **state)
{
    struct dp_error err = {0};
    opened(DP_DURABILITY_MACHINE, 14);
    (void)world_append(&world, 300);
    (void)world_commit(&world);
    world_crash(&world, DP_SIM_NOTHING);
    whole_size = world.disk.size;
    world.disk.size = half_size;
    assert_int_equal(world_open(&world, &err), DP_CORRUPT);
    assert_non_null(strstr(err.text, "has 32768 of its 65536 bytes"));
    world.disk.size = whole_size;
    assert_int_equal(world_open(&world, &err), DP_OK);
    world_clear(&world);
}

static void a_full_budget_waits_for_release(void **state)
{
    struct dp_journal_figures figures;
    enum dp_status st;
    opened(DP_DURABILITY_MACHINE, 9);
    for (uint32_t lap = 0; lap < 20; lap++) {
        while ((st = world_append(&world, 40000)) == DP_OK)
            (void)world_commit(&world);
        assert_int_equal(st, DP_AGAIN);
        dp_journal_figures(world.journal, &figures);
        assert_int_equal(figures.segments, WORLD_BUDGET / WORLD_SEGMENT);
        assert_int_equal(figures.bytes_used, WORLD_BUDGET);
        /* One segment: not released while one of its records is needed. */
        world_release(&world, figures.first_lsn);
        world_release(&world, world.marks + (lap % 2 ? 3 : 6));
        (void)world_commit(&world);
        assert_true(dp_sim_disk_used(world.sim) <= WORLD_BUDGET);
        world_crash(&world, DP_SIM_RANDOM);
        world_recover(&world, 0);
        world_release(&world, world.synced);
        (void)world_commit(&world);
    }
    world_clear(&world);
}

static void a_full_disk_refuses_and_recovers(void **state)
{
    enum dp_status st;
    struct dp_error err = {0};
    uint64_t lsn;
    opened(DP_DURABILITY_MACHINE, 10);
    dp_sim_disk_capacity(world.sim, dp_sim_disk_used(world.sim));
    while ((st = world_append(&world, 40000)) == DP_OK)
        assert_int_equal(world_commit(&world), DP_OK);
    assert_int_equal(st, DP_FULL);
    uint64_t last = world.last;
    struct dp_journal_piece piece = {"a record that is too long for what is left", 40};
    while (dp_journal_append(world.journal, &piece, 1, &lsn, &err) == DP_OK) {
        /* The rest of the last segment takes small ones. */
        dp_journal_commit(world.journal);
        last = lsn;
        world.options.replay = NULL;
    }
    assert_int_equal(err.status, DP_FULL);
    assert_non_null(strstr(err.text, "space"));
    dp_journal_commit(world.journal);
    assert_int_equal(dp_journal_durable(world.journal, &st, NULL), last);
    assert_int_equal(st, DP_OK);
    dp_sim_disk_capacity(world.sim, UINT64_MAX);
    dp_journal_commit(world.journal);
    assert_int_equal(dp_journal_append(world.journal, &piece, 1, &lsn, &err), DP_OK);
    world_clear(&world);
}

static uint64_t room_limit, room_asked;
static bool room_others; /* others take the last of it between the two questions */

static enum dp_status room_of_disk(void *context, uint64_t bytes, struct dp_error *err)
{
    bool others = room_others && bytes <= WORLD_SEGMENT;
    room_asked++;
    return others || dp_sim_disk_used(world.sim) + bytes > room_limit ? dp_fail(err, DP_FULL, "no room")
                                                                      : DP_OK;
}

/* A journal leaves what others need of the disk: it gets no segment, says so, and goes on in one that was released. */
static void a_new_segment_leaves_room_for_others(void **state)
{
    struct dp_error err = {0};
    for (uint32_t others = 0; others < 2; others++) {
        enum dp_status st = DP_OK;
        world_init(&world, 40, DP_DURABILITY_MACHINE);
        world.options.room = room_of_disk;
        room_limit = others ? UINT64_MAX : 3 * WORLD_SEGMENT + WORLD_SEGMENT / 2;
        assert_int_equal(world_open(&world, &err), DP_OK);
        room_others = others;
        while ((st = world_append(&world, 40000)) == DP_OK)
            (void)world_commit(&world);
        assert_int_equal(st, DP_FULL);
        assert_int_equal(dp_sim_disk_used(world.sim),
                         2 * WORLD_SEGMENT); /* a third would leave none for rows */
        (void)world_commit(&world);
        assert_int_equal(world_append(&world, 40000), DP_FULL);
        uint64_t asked = room_asked;
        world_release(&world, world.synced);
        (void)world_commit(&world);
        assert_int_equal(room_asked, asked); /* it has the room already */
        do
            st = world_append(&world, 40000);
        while (st == DP_OK && world_commit(&world) == DP_OK);
        assert_int_equal(st, DP_FULL);
        assert_int_equal(dp_sim_disk_used(world.sim), 2 * WORLD_SEGMENT);
        room_limit = UINT64_MAX;
        room_others = false;
        (void)world_commit(&world);
        assert_int_equal(world_append(&world, 40000), DP_OK);
        world_crash(&world, DP_SIM_NOTHING);
        world_recover(&world, 0);
        world_clear(&world);
    }
}

static uint64_t room_bytes;

static enum dp_status room_for(void *context, uint64_t bytes, struct dp_error *err)
{
    return dp_sim_disk_used(world.sim) + bytes <= room_bytes ? DP_OK : dp_fail(err, DP_FULL, "no room");
}

/* Segments of 1, 2, 3, 3 WORLD_SEGMENTs: little is taken before it is needed, and no more than the budget ever. Released ones that are too
 * small make way for large ones. */
static void a_journal_grows_as_it_is_needed(void **state)
{
    static const uint32_t used[] = {3, 6, 9};
    struct dp_error err = {0};
    enum dp_status st = DP_OK;
    world_init(&world, 50, DP_DURABILITY_MACHINE);
    world_grows(&world);
    assert_int_equal(world_open(&world, &err), DP_OK);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(dp_sim_disk_used(world.sim), used[i] * WORLD_SEGMENT);
        while (!offset_of(i + 2, world.last, 1)) { /* until a record begins the next one */
            assert_int_equal(world_append(&world, 20000), DP_OK);
            assert_int_equal(world_commit(&world), DP_OK);
        }
    }
    while ((st = world_append(&world, 20000)) == DP_OK)
        assert_int_equal(world_commit(&world), DP_OK);
    assert_int_equal(st, DP_AGAIN); /* the budget is used up */
    assert_int_equal(dp_sim_disk_used(world.sim), world.options.budget_bytes);
    for (uint32_t lap = 0; lap < 40; lap++) {
        world_release(&world, world.synced);
        assert_int_equal(world_commit(&world), DP_OK);
        for (uint32_t i = 0; i < 5; i++)
            assert_int_equal(world_append(&world, 20000), DP_OK);
        assert_int_equal(world_commit(&world), DP_OK);
        assert_true(dp_sim_disk_used(world.sim) <= world.options.budget_bytes);
    }
    assert_int_equal(dp_sim_disk_used(world.sim), world.options.budget_bytes); /* three large ones */
    world_crash(&world, DP_SIM_NOTHING);
    world_recover(&world, 0);
    world_clear(&world);
}

/* A record that the next segment is too small for waits for one that is not; where the disk has no room for that, smaller records go on. */
static void a_large_record_gets_a_large_segment(void **state)
{
    static uint8_t large[170000];
    struct dp_journal_piece piece = {large, sizeof large}, small = {large, 3000};
    for (uint32_t full = 0; full < 2; full++) {
        struct dp_error err = {0};
        uint64_t lsn = 0;
        world_init(&world, 51, DP_DURABILITY_MACHINE);
        world_grows(&world);
        world.options.room = room_for;
        room_bytes = full ? 4 * WORLD_SEGMENT : UINT64_MAX;
        world.options.replay = NULL;
        assert_int_equal(world_open(&world, &err), DP_OK);
        assert_int_equal(dp_journal_append(world.journal, &piece, 1, &lsn, &err), DP_AGAIN);
        dp_journal_commit(world.journal);
        assert_int_equal(dp_journal_append(world.journal, &piece, 1, &lsn, &err), full ? DP_FULL : DP_OK);
        for (uint32_t i = 0; i < 20 && full; i++) { /* beyond the first segment */
            assert_int_equal(dp_journal_append(world.journal, &small, 1, &lsn, &err), DP_OK);
            assert_int_equal(lsn, i + 1);
            dp_journal_commit(world.journal);
        }
        room_bytes = UINT64_MAX;
        dp_journal_commit(world.journal);
        enum dp_status st = full ? dp_journal_append(world.journal, &piece, 1, &lsn, &err) : DP_OK;
        if (st == DP_AGAIN) {
            dp_journal_commit(world.journal);
            st = dp_journal_append(world.journal, &piece, 1, &lsn, &err);
        }
        assert_int_equal(st, DP_OK);
        dp_journal_close(&world.journal);
        assert_int_equal(dp_journal_open(&world.options, &world.journal, &err), DP_OK);
        assert_int_equal(dp_journal_last(world.journal), lsn);
        world_clear(&world);
    }
}

/* A file that grew, and in it a header whose checksum holds, of a record larger than any that can be appended: it is not taken
 * for one, and no memory is asked for it. */
static void a_record_larger_than_any_is_none(void **state)
{
    static uint8_t zeros[1 << 20];
    char path[] = "/tmp/downpour-journal-XXXXXX", file[64];
    uint8_t bytes[DP_JOURNAL_HEADER];
    uint64_t lsn, payload = DP_JOURNAL_RECORD_MAX + (1 << 20);
    struct dp_disk disk;
    struct dp_error err = {0};
    struct dp_journal *journal = NULL;
    assert_non_null(mkdtemp(path));
    assert_int_equal(dp_disk_open(path, &disk, &err), DP_OK);
    struct dp_journal_options options = {
        .disk = &disk, .segment_bytes = WORLD_SEGMENT, .budget_bytes = WORLD_BUDGET};
    assert_int_equal(dp_journal_open(&options, &journal, &err), DP_OK);
    struct dp_journal_piece piece = {zeros, 100};
    assert_int_equal(dp_journal_append(journal, &piece, 1, &lsn, &err), DP_OK);
    dp_journal_commit(journal);
    dp_journal_close(&journal);
    struct dp_journal_header header = {.payload_crc = dp_journal_payload_seed(1, 2),
                                       .kind = DP_JOURNAL_RECORD,
                                       .bytes = payload,
                                       .lsn = 2,
                                       .incarnation = 1};
    for (uint64_t done = 0; done < payload; done += sizeof zeros)
        header.payload_crc = dp_crc32c(header.payload_crc, zeros, sizeof zeros);
    dp_journal_header_put(bytes, &header);
    (void)snprintf(file, sizeof file, "%s/journal-%016x", path, 1);
    int fd = open(file, O_RDWR);
    assert_true(fd >= 0 && ftruncate(fd, (off_t)(payload + WORLD_SEGMENT)) == 0);
    assert_int_equal(pwrite(fd, bytes, sizeof bytes, 2 * DP_JOURNAL_PAGE),
                     sizeof bytes); /* where it was closed */
    (void)close(fd);
    assert_int_equal(dp_journal_open(&options, &journal, &err), DP_OK);
    assert_int_equal(dp_journal_last(journal), 1);
    dp_journal_close(&journal);
    dp_disk_close(&disk);
    (void)snprintf(file, sizeof file, "rm -r %s", path);
    assert_int_equal(system(file), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_segment_that_is_cut_short_is_refused),
        cmocka_unit_test(a_full_budget_waits_for_release),
        cmocka_unit_test(a_full_disk_refuses_and_recovers),
        cmocka_unit_test(a_record_larger_than_any_is_none),
        cmocka_unit_test(a_new_segment_leaves_room_for_others),
        cmocka_unit_test(a_journal_grows_as_it_is_needed),
        cmocka_unit_test(a_large_record_gets_a_large_segment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
