/* One flipped bit in a store: inspect names the file, and a server refuses to start, or refuses the read, or serves what was
 * there; never anything else. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *scores_path(struct dp_place *place, const char *conf)
{
    return dp_place_text(place, "%s.scores", conf);
}

/* What a worker pulls, as scores: nine digits tell f32 apart. NULL: it was refused; *worker says how. */
static const char *scores_of(struct dp_place *place, const char *conf, struct dp_process **worker)
{
    const char *out = scores_path(place, conf);
    (void)remove(out);
    *worker = dp_place_start(place, "downpour-worker", "--cluster", conf, "--predict", DP_DIGITS_TEST,
                             "--out", out, NULL);
    int code = dp_process_wait(*worker, DP_SOON_MS);
    if (code != 0 && code != 2)
        fail_msg("the worker ended with %d: %s", code, dp_process_err(*worker));
    return code == 0 ? dp_place_read(place, out, NULL) : NULL;
}

struct trained {
    const char *conf, *store, *kept, *scores;
};

/* Until the journal of the idle server claims its last record. */
static void await_claim(struct dp_place *place, const char *store)
{
    double claimed = 0, last = 1;
    for (int tries = 0; claimed != last; tries++) {
        assert_true(tries < 100);
        struct dp_process *inspect = dp_place_start(place, "downpour", "inspect", store, "--json", NULL);
        if (dp_process_wait(inspect, DP_SOON_MS) != 0)
            continue; /* the server removed a file just then */
        const char *out = dp_process_out(inspect),
                   *json = dp_place_file(place, "live.json", out, strlen(out));
        claimed = dp_place_number(place, json, "stores.0.journal.durable_lsn");
        last = dp_place_number(place, json, "stores.0.journal.last_lsn");
    }
    assert_true(last > 0);
}

/* Trains, ends the server in this way, keeps a copy of its store. */
static struct trained train(struct dp_place *place, bool clean)
{
    struct trained t;
    struct dp_process *worker;
    struct dp_place_cluster cluster = {.epochs = 3,
                                       .batch = 8,
                                       .timeout_ms = 10000,
                                       .training = "overlap = false; pushes_max = 1;",
                                       .top = "journal_bytes = \"16MiB\";"};
    t.conf = dp_place_conf(place, &cluster);
    t.store = dp_place_path(place, "c-0");
    t.kept = dp_place_path(place, "kept");
    struct dp_process *server = dp_place_server(place, t.conf, 0);
    dp_place_ended(dp_place_worker(place, t.conf, 0), 0);
    t.scores = scores_of(place, t.conf, &worker);
    assert_non_null(t.scores);
    if (clean)
        dp_place_stops_cleanly(server);
    else {
        await_claim(place, t.store);
        dp_process_signal(server, SIGKILL);
        dp_place_ended(server, -SIGKILL);
    }
    (void)dp_place_try(place, 0, "/bin/mv", t.store, t.kept);
    return t;
}

static void flip(const char *path, long at, int bit)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_true(byte != EOF);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 1 << bit, file), byte ^ 1 << bit);
    assert_int_equal(fclose(file), 0);
}

/* Fit for a terminal: names here are ASCII. */
static void is_clean_text(const char *text)
{
    for (const char *c = text; *c; c++)
        if ((*c < ' ' && *c != '\n') || (unsigned char)*c > '~')
            fail_msg("byte %02x in: %s", (unsigned)(unsigned char)*c, text);
}

/* A fresh copy of what was kept, with this bit of `name` flipped. `harmless`: it may be that nobody misses it. */
static void check_flip(struct dp_place *place, const struct trained *t, const char *name, long at, int bit,
                       bool harmless)
{
    (void)dp_place_try(place, 0, "/bin/rm", "-rf", t->store);
    (void)dp_place_try(place, 0, "/bin/cp", "-a", t->kept, t->store);
    flip(dp_place_text(place, "%s/shard-0000/%s", t->store, name), at, bit);
    const char *file = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
    struct dp_process *inspect = dp_place_start(place, "downpour", "inspect", t->store, "--verify", NULL);
    int code = dp_process_wait(inspect, DP_SOON_MS);
    is_clean_text(dp_process_out(inspect));
    is_clean_text(dp_process_err(inspect));
    /* All places on stdout, the first one on stderr, too: damage of a segment's page is met where the one before ends. */
    if (!harmless && (code != 2 || !strstr(dp_process_out(inspect), file)))
        fail_msg("%s, offset %ld, bit %d: inspect ended with %d: %s", name, at, bit, code,
                 dp_process_err(inspect));
    struct dp_process *worker = NULL, *server = dp_place_start(place, "downpour-server", "--cluster", t->conf,
                                                               "--server", "0", NULL);
    if (!dp_process_await(server, "ready:", DP_SOON_MS)) {
        dp_place_ended(server, 2);
        if (!strstr(dp_process_err(server), file) && !strstr(dp_process_err(server), "MANIFEST") &&
            !(strstr(name, "journal-") && strstr(dp_process_err(server), "journal-")))
            fail_msg("%s, offset %ld, bit %d: the server says: %s", name, at, bit, dp_process_err(server));
        is_clean_text(dp_process_err(server));
        if (code != 2)
            fail_msg("%s, offset %ld, bit %d: inspect sees nothing, the server says: %s", name, at, bit,
                     dp_process_err(server));
        return;
    }
    const char *scores = scores_of(place, t->conf, &worker);
    if (scores && strcmp(scores, t->scores) != 0)
        fail_msg("%s, offset %ld, bit %d: other values are served", name, at, bit);
    if (!scores && !strstr(dp_process_err(worker), file))
        fail_msg("%s, offset %ld, bit %d: the worker says: %s", name, at, bit, dp_process_err(worker));
    dp_process_signal(server, SIGKILL);
    dp_place_ended(server, -SIGKILL);
}

/* The names in the kept shard that start with or end in the text; *count of them. */
static const char **find(struct dp_place *place, const struct trained *t, const char *text, int *count)
{
    static const char *names[64];
    struct dirent **list = NULL;
    const char *slash = strchr(text, '/'), *within = slash ? "journal/" : "";
    const char *part = slash ? slash + 1 : text;
    int all = scandir(dp_place_text(place, "%s/shard-0000/%s", t->kept, within), &list, NULL, alphasort);
    *count = 0;
    for (int i = 0; i < all; i++) {
        const char *name = list[i]->d_name;
        size_t len = strlen(name), most = strlen(part);
        if (len > most && *count < 64 &&
            (strncmp(name, part, most) == 0 || strcmp(name + len - most, part) == 0))
            names[(*count)++] = dp_place_text(place, "%s%s", within, name);
        free(list[i]);
    }
    free(list);
    assert_true(*count > 0);
    return names;
}

static void in_the_journal(void **state)
{
    struct dp_place *place = *state;
    struct trained t = train(place, false);
    int count, kept = 0;
    const char **names = find(place, &t, "journal/journal-", &count);
    for (int i = 0; i < count; i++) {
        size_t bytes = 0;
        const char *segment =
            dp_place_read(place, dp_place_text(place, "%s/shard-0000/%s", t.kept, names[i]), &bytes);
        if (memcmp(segment, "DPJ1", 4) != 0)
            continue; /* not used yet */
        bool has_record = memcmp(segment + 4096, "DPJR", 4) == 0;
        kept += has_record;
        if (has_record && kept <= 3) {
            check_flip(place, &t, names[i], 4096 + 24, 0, false);  /* the first record's header */
            check_flip(place, &t, names[i], 4096 + 200, 4, false); /* its payload */
            check_flip(place, &t, names[i], 20, 4, false);         /* the page */
        }
    }
    assert_true(kept > 0);
}

static uint64_t number_at(const char *bytes, size_t width)
{
    uint64_t n = 0;
    for (size_t i = width; i-- > 0;)
        n = n << 8 | (unsigned char)bytes[i];
    return n;
}

/* The last record was acknowledged: once the journal was idle, damage to it is damage. */
static void in_the_journals_last_record(void **state)
{
    struct dp_place *place = *state;
    struct trained t = train(place, false);
    int count;
    const char **names = find(place, &t, "journal/journal-", &count), *last = NULL;
    uint64_t lsn = 0, opening = 0;
    long at = 0;
    for (int i = 0; i < count; i++) {
        size_t bytes = 0;
        const char *segment =
            dp_place_read(place, dp_place_text(place, "%s/shard-0000/%s", t.kept, names[i]), &bytes);
        for (size_t k = 4096; memcmp(segment, "DPJ1", 4) == 0 && k + 64 <= bytes; k += 64) {
            const char *header = segment + k;
            if (memcmp(header, "DPJR", 4) != 0 || number_at(header + 12, 4) != 1 ||
                number_at(header + 32, 8) < opening || number_at(header + 24, 8) < lsn)
                continue;
            opening = number_at(header + 32, 8);
            lsn = number_at(header + 24, 8);
            last = names[i];
            at = (long)k;
        }
    }
    assert_non_null(last);
    check_flip(place, &t, last, at + 1, 3, false);  /* its magic number */
    check_flip(place, &t, last, at + 24, 0, false); /* its lsn */
    check_flip(place, &t, last, at + 16, 6, false); /* its length */
    check_flip(place, &t, last, at + 70, 5, false); /* its payload */
}

/* Each file that there is: named, or harmless, and inspect says so wherever the server does. */
static void in_each_file(void **state)
{
    struct dp_place *place = *state;
    struct trained t = train(place, true);
    const char *const folders[] = {"", "journal/", "../"};
    int checked = 0;
    for (int f = 0; f < 3; f++) {
        struct dirent **list = NULL;
        int all =
            scandir(dp_place_text(place, "%s/shard-0000/%s", t.kept, folders[f]), &list, NULL, alphasort);
        assert_true(f == 1 ? all == 2 : all > 2); /* (a store that was closed cleanly has no journal) */
        for (int i = 0; i < all; i++) {
            const char *name = dp_place_text(place, "%s%s", folders[f], list[i]->d_name);
            struct stat found;
            assert_int_equal(stat(dp_place_text(place, "%s/shard-0000/%s", t.kept, name), &found), 0);
            free(list[i]);
            if (!S_ISREG(found.st_mode) || found.st_size == 0)
                continue;
            check_flip(place, &t, name, 0, 1, true);
            check_flip(place, &t, name, (long)found.st_size / 2, 6, true);
            check_flip(place, &t, name, (long)found.st_size - 1, 7, true);
            checked++;
        }
        free(list);
    }
    assert_true(checked >= 8);
}

/* Its bytes get into RocksDB's messages. Whatever they are, what is printed is text, and JSON with --json. */
static void in_current(void **state)
{
    struct dp_place *place = *state;
    struct trained t = train(place, true);
    for (int i = 0; i < 8; i++) {
        check_flip(place, &t, "CURRENT", 2 * i, 7 - i % 3, false);
        struct dp_process *inspect = dp_place_try(place, 2, "downpour", "inspect", t.store, "--json");
        const char *out = dp_process_out(inspect), *json = dp_place_file(place, "out.json", out, strlen(out));
        is_clean_text(out);
        assert_true(dp_place_number(place, json, "stores.0.damages") == 1);
        assert_true(dp_place_number(place, json, "refused.number") > 0);
    }
    struct dp_process *inspect =
        dp_place_try(place, 2, "downpour", "inspect", dp_place_path(place, "no\xff\nwhere"), "--json");
    const char *out = dp_process_out(inspect), *json = dp_place_file(place, "out.json", out, strlen(out));
    assert_true(dp_place_number(place, json, "refused.number") > 0);
    inspect = dp_place_try(place, 2, "downpour", "inspect", t.store, "--json", "--limit", "3");
    out = dp_process_out(inspect), json = dp_place_file(place, "out.json", out, strlen(out));
    assert_true(dp_place_number(place, json, "refused.number") > 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        TEST(in_the_journal),
        TEST(in_the_journals_last_record),
        TEST(in_each_file),
        TEST(in_current),
    };
    return cmocka_run_group_tests_name("flipped", tests, NULL, NULL);
}
