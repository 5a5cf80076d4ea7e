/* The journal's rules one by one, on the simulated disk. */
#include "tests/unit/server/journal/journal_places.h"

static void what_was_appended_is_replayed(void **state)
{
    static const uint64_t sizes[] = {1, 60, 64, 4000, 32000, 33000, 55000};
    struct dp_journal_figures figures;
    opened(DP_DURABILITY_MACHINE, 1);
    for (uint32_t i = 0; i < 21; i++) {
        while (world_append(&world, sizes[i % 7]) == DP_AGAIN) {
            world_release(&world, world.synced);
            (void)world_commit(&world);
        }
        (void)world_commit(&world);
    }
    uint64_t last = world.last;
    world_close(&world);
    for (uint32_t i = 0; i < 3; i++) {
        world_recover(&world, 0);
        assert_int_equal(world.replayed, last);
        dp_journal_figures(world.journal, &figures);
        assert_int_equal(figures.replayed_records, last - world.marks);
        assert_int_equal(figures.cut.rest, DP_JOURNAL_REST_NONE);
        assert_int_equal(figures.incarnation, i + 2);
        world_close(&world);
    }
    world_clear(&world);
}

static void empty_and_largest_records(void **state)
{
    static uint8_t large[WORLD_SEGMENT];
    uint64_t lsn;
    struct dp_error err = {0};
    opened(DP_DURABILITY_MACHINE, 2);
    world.options.replay = NULL;
    struct dp_journal_piece piece = {large, WORLD_SEGMENT - DP_JOURNAL_PAGE - DP_JOURNAL_HEADER};
    assert_int_equal(dp_journal_append(world.journal, NULL, 0, &lsn, &err), DP_OK);
    dp_journal_commit(world.journal);
    assert_int_equal(dp_journal_append(world.journal, &piece, 1, &lsn, &err), DP_OK);
    assert_int_equal(lsn, 2);
    piece.bytes++;
    assert_int_equal(dp_journal_append(world.journal, &piece, 1, &lsn, &err), DP_ARGUMENT);
    dp_journal_close(&world.journal);
    assert_int_equal(dp_journal_open(&world.options, &world.journal, &err), DP_OK);
    assert_int_equal(dp_journal_last(world.journal), 2);
    world_clear(&world);
}

static void bad_options_are_named(void **state)
{
    struct dp_error err = {0};
    world_init(&world, 3, DP_DURABILITY_MACHINE);
    world.options.segment_bytes = 60 << 10;
    assert_int_equal(dp_journal_open(&world.options, &world.journal, &err), DP_ARGUMENT);
    world.options.segment_bytes = (64 << 10) + 1;
    assert_int_equal(dp_journal_open(&world.options, &world.journal, &err), DP_ARGUMENT);
    world.options.segment_bytes = 64 << 10;
    world.options.budget_bytes = 128 << 10;
    assert_int_equal(dp_journal_open(&world.options, &world.journal, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, "budget"));
    world_clear(&world);
}

/* Each bit of some, and random ones of all: refused, or nothing durable is lost. */
static void flipped_bits_after_a_clean_close(void **state)
{
    uint64_t refused = 0, tries = 0;
    opened(DP_DURABILITY_MACHINE, 4);
    for (uint32_t i = 0; i < 30; i++) {
        (void)world_append(&world, i % 5 == 0 ? 20000 : 700);
        (void)world_commit(&world);
    }
    world_close(&world);
    for (uint32_t i = 0; i < 6000; i++) {
        char name[32];
        uint64_t bytes = 0, lsn = 1 + world_draw(&world) % world.last, number = 1, at = 0;
        for (; number < 6 && !at; number++)
            at = offset_of(number, lsn, 1);
        assert_true(at > 0);
        name_of(name, number - 1);
        /* The header in half of the cases; what is durable of a record has no bit to spare but what aligns it. */
        at = i % 8 == 0 ? world_draw(&world) % DP_JOURNAL_HEADER
                        : at + world_draw(&world) % (i % 2 ? DP_JOURNAL_HEADER : DP_JOURNAL_HEADER + 8);
        uint8_t bit = (uint8_t)(1u << world_draw(&world) % 8);
        dp_sim_disk_bytes(world.sim, name, &bytes)[at] ^= bit;
        struct dp_error err = {0};
        enum dp_status st = world_open(&world, &err);
        tries++;
        refused += st == DP_CORRUPT;
        assert_int_equal(st, DP_CORRUPT);
        assert_non_null(strstr(err.text, "journal-"));
        assert_non_null(strstr(err.text, "lsn"));
        assert_int_equal(world.replayed, 0); /* refused before anything was replayed */
        dp_sim_disk_bytes(world.sim, name, &bytes)[at] ^= bit;
    }
    assert_int_equal(refused, tries);
    world_recover(&world, 0);
    world_clear(&world);
}

/* After a crash: records at or below the highest claim are refused, those beyond are cut. */
static void flipped_bits_around_the_durable_lsn(void **state)
{
    for (uint64_t lsn = 1; lsn <= 6; lsn++) {
        char name[32];
        uint64_t bytes;
        struct dp_error err = {0};
        opened(DP_DURABILITY_MACHINE, 5);
        for (uint32_t i = 0; i < 6; i++) { /* 4 says that 3 was durable; 4, 5, 6 are a round of their own */
            (void)world_append(&world, 300);
            if (i < 3)
                (void)world_commit(&world);
        }
        (void)world_commit(&world);
        world.durable = world.synced = 3;
        dp_sim_disk_cut_at(world.sim, 1);
        dp_journal_close(&world.journal); /* without its mark */
        dp_sim_disk_restart(world.sim, DP_SIM_NOTHING);
        name_of(name, 1);
        uint64_t at = offset_of(1, lsn, 1);
        dp_sim_disk_bytes(world.sim, name, &bytes)[at + 70] ^= 4;
        enum dp_status st = world_open(&world, &err);
        if (lsn <= 3) {
            assert_int_equal(st, DP_CORRUPT);
            char wanted[64];
            (void)snprintf(wanted, sizeof wanted, "lsn %" PRIu64 " is damaged", lsn);
            assert_non_null(strstr(err.text, wanted));
        } else {
            assert_int_equal(st, DP_OK);
            assert_int_equal(world.last, lsn - 1);
        }
        world_clear(&world);
    }
}

/* What an opening replayed was rows and positions from then on: the page of its own segment claims it, also where nothing was
 * appended behind it. So damage to it is refused by the next opening, not cut as a torn tail. */
static void an_opening_claims_what_it_replayed(void **state)
{
    char name[32];
    uint64_t bytes;
    struct dp_error err = {0};
    opened(DP_DURABILITY_MACHINE, 12);
    for (uint32_t i = 0; i < 3; i++)
        (void)world_append(&world, 300);
    (void)world_commit(&world); /* one round, which no header behind it claims */
    world_crash(&world, DP_SIM_NOTHING);
    world_recover(&world, 0);
    assert_int_equal(world.replayed, 3);
    world_crash(&world, DP_SIM_NOTHING);
    name_of(name, 1);
    uint64_t at = offset_of(1, 3, 1);
    assert_true(at > 0);
    dp_sim_disk_bytes(world.sim, name, &bytes)[at + 70] ^= 4;
    assert_int_equal(world_open(&world, &err), DP_CORRUPT);
    assert_non_null(strstr(err.text, "lsn 3 is damaged"));
    world_clear(&world);
}

/* The page of a new segment claims what was synced before it, also where the record behind it was torn. */
static void a_new_segment_claims_what_was_synced(void **state)
{
    char name[32];
    uint64_t bytes, at = 0;
    struct dp_error err = {0};
    opened(DP_DURABILITY_MACHINE, 13);
    for (uint64_t last = 0; !at;) { /* a round a record, until one begins the second segment */
        last += world_append(&world, 30000) == DP_OK;
        (void)world_commit(&world);
        at = offset_of(2, last, 1);
    }
    assert_int_equal(at, DP_JOURNAL_PAGE);
    uint64_t before = world.last - 1;
    world.durable = world.synced = before; /* as if the last round had been torn behind the page */
    world_crash(&world, DP_SIM_NOTHING);
    name_of(name, 2);
    uint8_t *torn = dp_sim_disk_bytes(world.sim, name, &bytes);
    memset(torn + at, 0, (size_t)(bytes - at)); /* headers of pads claim as well */
    name_of(name, 1);
    at = offset_of(1, before, 1);
    assert_true(at > 0);
    dp_sim_disk_bytes(world.sim, name, &bytes)[at + 70] ^= 4;
    char wanted[64];
    (void)snprintf(wanted, sizeof wanted, "lsn %" PRIu64 " is damaged", before);
    assert_int_equal(world_open(&world, &err), DP_CORRUPT);
    assert_non_null(strstr(err.text, wanted));
    world_clear(&world);
}

/* The exact place behind a torn tail holds a record of an earlier opening, whole, with the lsn that comes next. */
static void a_stale_record_is_not_taken(void **state)
{
    struct dp_error err = {0};
    char name[32];
    uint64_t bytes;
    uint8_t stale[4096];
    opened(DP_DURABILITY_MACHINE, 6);
    (void)world_append(&world, 300);
    (void)world_commit(&world); /* 1 */
    (void)world_append(&world, 300);
    (void)world_commit(&world); /* 2, to be lost */
    uint64_t at = offset_of(1, 2, 1);
    name_of(name, 1);
    memcpy(stale, dp_sim_disk_bytes(world.sim, name, &bytes) + at, sizeof stale);
    world.synced = world.durable = 1;
    dp_sim_disk_cut_at(world.sim, 1);
    dp_journal_close(&world.journal);
    dp_sim_disk_restart(world.sim, DP_SIM_NOTHING);
    memset(dp_sim_disk_bytes(world.sim, name, &bytes) + at, 0, sizeof stale);
    assert_int_equal(world_open(&world, &err), DP_OK); /* segment 3: 2 was prepared */
    assert_int_equal(world.last, 1);
    dp_sim_disk_cut_at(world.sim, 1);
    dp_journal_close(&world.journal);
    dp_sim_disk_restart(world.sim, DP_SIM_NOTHING);
    uint64_t page = 0;
    for (uint64_t number = 2; number < 5 && !page; number++) {
        struct dp_journal_page found;
        name_of(name, number);
        uint8_t *data = dp_sim_disk_bytes(world.sim, name, &bytes);
        if (data && dp_journal_page_take(data, &found) && found.number == number && found.incarnation == 2) {
            page = number;
            memcpy(data + DP_JOURNAL_PAGE, stale, sizeof stale); /* as a recycled file would hold it */
        }
    }
    assert_true(page > 0);
    assert_int_equal(world_open(&world, &err), DP_OK);
    assert_int_equal(world.last, 1);
    world_clear(&world);
}

static void a_failed_sync_poisons(void **state)
{
    for (uint32_t kind = 0; kind < 2; kind++) {
        enum dp_status st;
        struct dp_error err = {0};
        uint64_t lsn;
        opened(DP_DURABILITY_MACHINE, 7 + kind);
        (void)world_append(&world, 300);
        (void)world_commit(&world);
        (void)world_append(&world, 300);
        dp_sim_disk_fail(world.sim, kind ? DP_SIM_WRITE : DP_SIM_SYNC, 1, 1, DP_IO);
        dp_journal_commit(world.journal);
        assert_int_equal(dp_journal_durable(world.journal, &st, &err), 1);
        assert_int_equal(st, DP_IO);
        assert_non_null(strstr(err.text, "injected"));
        dp_journal_commit(world.journal); /* the disk would sync now; nobody may believe it */
        assert_int_equal(dp_journal_durable(world.journal, &st, &err), 1);
        assert_int_equal(dp_journal_append(world.journal, NULL, 0, &lsn, &err), DP_IO);
        /* Reopened: what is replayed of the doubtful record is durable then. */
        dp_journal_close(&world.journal);
        dp_sim_disk_restart(world.sim, DP_SIM_PROCESS);
        world_recover(&world, 0);
        world_crash(&world, DP_SIM_NOTHING);
        world_recover(&world, 0);
        world_clear(&world);
    }
}

/* A record that a failed sync left in the page cache only, and that an opening replayed, must outlast power. */
static void what_is_replayed_is_durable(void **state)
{
    uint32_t seen = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        opened(DP_DURABILITY_MACHINE, 100 + seed);
        (void)world_append(&world, 300);
        dp_sim_disk_fail(world.sim, DP_SIM_SYNC, 1, 1, DP_IO);
        dp_journal_commit(world.journal);
        dp_journal_close(&world.journal);
        dp_sim_disk_restart(world.sim, DP_SIM_PROCESS);
        world_recover(&world, 0);
        seen += world.replayed == 1;
        world_crash(&world, DP_SIM_NOTHING);
        world_recover(&world, 0);
        world_clear(&world);
    }
    assert_in_range(seen, 5, 35);
}

static void process_mode_is_durable_once_written(void **state)
{
    opened(DP_DURABILITY_PROCESS, 11);
    for (uint32_t i = 0; i < 10; i++) {
        (void)world_append(&world, 900);
        assert_int_equal(world_commit(&world), DP_OK);
        assert_int_equal(world.durable, world.last);
        assert_int_equal(world.synced, 0);
    }
    world_crash(&world, DP_SIM_PROCESS);
    world_recover(&world, 0);
    assert_int_equal(world.last, 10);
    (void)world_append(&world, 900);
    (void)world_commit(&world);
    dp_journal_sync(world.journal);
    world.synced = dp_journal_synced(world.journal);
    assert_int_equal(world.synced, 11);
    (void)world_append(&world, 900);
    (void)world_commit(&world);
    world_crash(&world, DP_SIM_NOTHING);
    world_recover(&world, 0);
    assert_int_equal(world.last, 11);
    world_clear(&world);
}

static void another_version_and_missing_files_are_refused(void **state)
{
    struct dp_error err = {0};
    uint64_t bytes;
    opened(DP_DURABILITY_MACHINE, 12);
    for (uint32_t i = 0; i < 8; i++) {
        (void)world_append(&world, 40000);
        (void)world_commit(&world);
    }
    world_close(&world);
    /* The first segment is gone. */
    assert_int_equal(world.disk.rename(world.disk.self, "journal-0000000000000001", "elsewhere", &err),
                     DP_OK);
    assert_int_equal(world_open(&world, &err), DP_CORRUPT);
    assert_int_equal(world.disk.rename(world.disk.self, "elsewhere", "journal-0000000000000001", &err),
                     DP_OK);
    assert_int_equal(world.disk.rename(world.disk.self, "journal-0000000000000002", "elsewhere", &err),
                     DP_OK);
    assert_int_equal(world_open(&world, &err), DP_CORRUPT);
    assert_int_equal(world.disk.rename(world.disk.self, "elsewhere", "journal-0000000000000002", &err),
                     DP_OK);
    struct dp_journal_page page;
    uint8_t *data = dp_sim_disk_bytes(world.sim, "journal-0000000000000001", &bytes);
    assert_true(dp_journal_page_take(data, &page));
    page.version = 2;
    dp_journal_page_put(data, &page);
    assert_int_equal(world_open(&world, &err), DP_UNSUPPORTED);
    assert_non_null(strstr(err.text, "format 2"));
    page.version = 1;
    dp_journal_page_put(data, &page);
    world_recover(&world, 0);
    world_clear(&world);
}

static enum dp_status refuse(void *context, uint64_t lsn, const void *record, size_t bytes,
                             struct dp_error *err)
{
    return dp_fail(err, DP_UNSUPPORTED, "not lsn %" PRIu64, lsn);
}

static void replay_may_end_the_opening(void **state)
{
    struct dp_error err = {0};
    opened(DP_DURABILITY_MACHINE, 13);
    (void)world_append(&world, 40);
    (void)world_append(&world, 40);
    world_close(&world);
    struct dp_journal_options options = world.options;
    options.replay = refuse;
    options.replay_after = 1;
    assert_int_equal(dp_journal_open(&options, &world.journal, &err), DP_UNSUPPORTED);
    assert_non_null(strstr(err.text, "not lsn 2"));
    assert_null(world.journal);
    world_recover(&world, 0);
    world_clear(&world);
}

struct told {
    uint32_t times, stop_at;
    uint64_t done[2], all[2];
    uint64_t wrong;
};

static enum dp_status note_progress(void *context, enum dp_journal_phase phase, uint64_t done_bytes,
                                    uint64_t all_bytes, struct dp_error *err)
{
    struct told *told = context;
    told->wrong += done_bytes > all_bytes || done_bytes < told->done[phase];
    told->done[phase] = done_bytes;
    told->all[phase] = all_bytes;
    return ++told->times == told->stop_at ? dp_fail(err, DP_STOPPING, "enough") : DP_OK;
}

/* An opening tells how far it is, and may be stopped there: whatever the place, the next one replays all. */
static void an_opening_tells_its_progress_and_stops(void **state)
{
    struct dp_error err;
    struct told told = {0};
    opened(DP_DURABILITY_MACHINE, 77);
    for (uint32_t i = 0; i < 60; i++) {
        while (world_append(&world, 50000) == DP_AGAIN) {
            world_release(&world, world.synced);
            (void)world_commit(&world);
        }
        (void)world_commit(&world);
    }
    uint64_t last = world.last;
    world_close(&world);
    world.options.progress = note_progress;
    world.options.progress_context = &told;
    for (told.stop_at = 1; world_open(&world, &err) != DP_OK; told.stop_at++) {
        assert_int_equal(err.status, DP_STOPPING);
        assert_int_equal(told.times, told.stop_at);
        told = (struct told){.stop_at = told.stop_at};
        assert_true(told.stop_at < 1000);
    }
    assert_true(told.stop_at > 4);
    assert_int_equal(told.wrong, 0);
    assert_true(told.all[DP_JOURNAL_CHECKING] > 0 && told.all[DP_JOURNAL_REPLAYING] > 0);
    assert_int_equal(world.replayed, last);
    world.options.progress = NULL;
    world_close(&world);
    world_clear(&world);
}

/* A client's bytes in a record: a whole header that claims, with this secret. The segment is used again, and the process dies, so that
 * the next opening looks for claims behind the end. */
static enum dp_status opened_over_forged(uint64_t secret, uint64_t guess, struct dp_error *err)
{
    uint8_t forged[DP_JOURNAL_HEADER];
    struct dp_journal_piece piece = {forged, sizeof forged};
    uint64_t lsn;
    dp_journal_header_put(forged, &(struct dp_journal_header){.kind = DP_JOURNAL_RECORD,
                                                              .bytes = 64,
                                                              .lsn = 2,
                                                              .incarnation = 1,
                                                              .synced_lsn = UINT64_C(1) << 60,
                                                              .secret = guess});
    world_init(&world, 9, DP_DURABILITY_MACHINE);
    world.options.replay = NULL;
    world.options.secret = secret;
    for (uint64_t opening = 1; opening <= 2; opening++) {
        assert_int_equal(dp_journal_open(&world.options, &world.journal, err), DP_OK);
        for (uint64_t i = opening; i <= 2; i++) { /* fewer in the second: the last one stays behind its end */
            assert_int_equal(dp_journal_append(world.journal, &piece, 1, &lsn, err), DP_OK);
            dp_journal_commit(world.journal);
        }
        world.options.replay_after = lsn;
        world.options.secret++; /* what a later opening draws counts for nothing */
        if (opening == 1)
            dp_journal_close(&world.journal);
    }
    world_crash(&world, DP_SIM_PROCESS);
    enum dp_status st = dp_journal_open(&world.options, &world.journal, err);
    world_clear(&world);
    return st;
}

static void what_a_client_sends_is_no_claim(void **state)
{
    struct dp_error err = {0};
    assert_int_equal(opened_over_forged(77, 0, &err), DP_OK);
    assert_int_equal(opened_over_forged(77, 78, &err), DP_OK);
    assert_int_equal(opened_over_forged(77, 77, &err),
                     DP_CORRUPT); /* who knows it: these bytes are looked at */
}

/* The same as a record behind a torn tail. */
static void what_a_client_sends_is_no_record(void **state)
{
    for (uint64_t guess = 0; guess <= 77; guess += 77) {
        struct dp_error err = {0};
        uint8_t payload[DP_JOURNAL_HEADER + 64] = {0};
        struct dp_journal_header forged = {
            .kind = DP_JOURNAL_RECORD, .bytes = 64, .lsn = 2, .incarnation = 1, .secret = guess};
        forged.payload_crc =
            dp_crc32c(dp_journal_payload_seed(1, 2), payload + DP_JOURNAL_HEADER, (size_t)forged.bytes);
        dp_journal_header_put(payload, &forged);
        uint64_t bytes;
        world_init(&world, 9, DP_DURABILITY_MACHINE);
        world.options.replay = NULL;
        world.options.secret = 77;
        assert_int_equal(dp_journal_open(&world.options, &world.journal, &err), DP_OK);
        struct dp_journal_piece piece = {payload, 32};
        uint64_t lsn;
        assert_int_equal(dp_journal_append(world.journal, &piece, 1, &lsn, &err), DP_OK);
        dp_journal_commit(world.journal);
        uint64_t at = offset_of(1, 1, 1) + DP_JOURNAL_PAGE;
        world_crash(&world, DP_SIM_PROCESS);
        uint8_t *data = dp_sim_disk_bytes(world.sim, "journal-0000000000000001", &bytes);
        memcpy(data + at, payload, sizeof payload); /* of an earlier use of the segment */
        assert_int_equal(dp_journal_open(&world.options, &world.journal, &err), DP_OK);
        assert_int_equal(dp_journal_last(world.journal), guess == 77 ? 2 : 1);
        world_clear(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_appended_is_replayed),
        cmocka_unit_test(empty_and_largest_records),
        cmocka_unit_test(bad_options_are_named),
        cmocka_unit_test(flipped_bits_after_a_clean_close),
        cmocka_unit_test(flipped_bits_around_the_durable_lsn),
        cmocka_unit_test(an_opening_claims_what_it_replayed),
        cmocka_unit_test(a_new_segment_claims_what_was_synced),
        cmocka_unit_test(a_stale_record_is_not_taken),
        cmocka_unit_test(what_a_client_sends_is_no_claim),
        cmocka_unit_test(what_a_client_sends_is_no_record),
        cmocka_unit_test(a_failed_sync_poisons),
        cmocka_unit_test(what_is_replayed_is_durable),
        cmocka_unit_test(process_mode_is_durable_once_written),
        cmocka_unit_test(another_version_and_missing_files_are_refused),
        cmocka_unit_test(replay_may_end_the_opening),
        cmocka_unit_test(an_opening_tells_its_progress_and_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
