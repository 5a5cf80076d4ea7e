/* cluster: what is written reads back equal; the example file is read and explains every key; whatever is
 * wrong in a file is refused by file, line and key. */
#include "tests/unit/config/cluster_text.h"

#include "common/config/metrics_address.h"
#include "common/model/optimizer_kinds.h"

static void least_file_has_the_defaults(void **state)
{
    struct dp_cluster *c = NULL, d;
    struct dp_error err = {0};
    assert_int_equal(read_text(GOOD, &c, &err), DP_OK);
    dp_cluster_defaults(&d);
    d.training.run = 0; /* of a file: the first server chooses */
    assert_int_equal(c->server_count, 1);
    assert_int_equal(c->server[0].shards, 1);
    assert_true(c->id != 0);
    assert_true(memcmp(&c->training, &d.training, sizeof d.training) == 0);
    assert_int_equal(c->cache_bytes, d.cache_bytes);
    dp_cluster_free(&c);
    assert_null(c);
    dp_cluster_free(&c);
    /* As editors elsewhere write it: UTF-8's mark, CR LF. The lines keep their numbers. */
    assert_int_equal(
        read_text("\xef\xbb\xbfname = \"t\";\r\nmodel = \"logistic\";\r\n" SERVERS DATA, &c, &err), DP_OK);
    assert_string_equal(c->model, "logistic");
    dp_cluster_free(&c);
    assert_int_equal(read_text("\xef\xbb\xbfnmae = \"t\";\r\n", &c, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, ":1: unknown key 'nmae'"));
}

static void values_come_as_written(void **state)
{
    struct dp_cluster *c = NULL;
    struct dp_error err = {0};
    static const char text[] = TOP
        "id = \"18446744073709551615\"; generation = 0xFFFFFFFFFFFFFFFF; cache_bytes = 0x200000000;\n" SERVERS
            DATA "training = { seed = 5000000000; warmup_steps = 5000000000L; rate = 1; epochs = 7L; batch = "
        "0x10; overlap = false;\n"
        "decay = \"inverse-sqrt\"; optimizer = { kind = \"ftrl\"; l1 = 0.1; l2 = 2; }; };";
    assert_int_equal(read_text(text, &c, &err), DP_OK);
    assert_true(c->id == UINT64_MAX && c->obsolete_generation == UINT64_MAX && c->cache_bytes == 8589934592u);
    assert_true(c->training.seed == 5000000000u && c->training.rate == 1.0 && c->training.epochs == 7);
    assert_int_equal(c->training.batch, 16);
    assert_true(c->training.warmup_steps == 5000000000u);
    assert_false(c->training.overlap);
    assert_int_equal(c->training.decay, DP_DECAY_INVERSE_SQRT);
    assert_int_equal(c->training.optimizer.kind, DP_OPT_FTRL);
    assert_true(c->training.optimizer.l1 == 0.1f && c->training.optimizer.l2 == 2.0f);
    dp_cluster_free(&c);
    assert_int_equal(read_text(OPT("kind = \"adamw\";"), &c, &err), DP_OK);
    assert_int_equal(c->training.optimizer.kind, DP_OPT_ADAM);
    assert_true(c->training.optimizer.decay == 0.01f && c->training.optimizer.beta1 == 0.9f);
    dp_cluster_free(&c);
    assert_int_equal(read_text(OPT("momentum = 0.5; kind = \"momentum\";"), &c, &err), DP_OK);
    assert_int_equal(c->training.optimizer.kind, DP_OPT_SGD);
    assert_true(c->training.optimizer.momentum == 0.5f);
    dp_cluster_free(&c);
}

/* Field by field: bytes after a text's end are nobody's. */
static void assert_same(const struct dp_cluster *a, const struct dp_cluster *b)
{
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->model, b->model);
    assert_true(a->id == b->id && a->cache_bytes == b->cache_bytes);
    assert_int_equal(b->obsolete_generation, 1); /* it is not written */
    assert_int_equal(a->server_count, b->server_count);
    for (uint32_t i = 0; i < a->server_count; i++) {
        assert_string_equal(a->server[i].host, b->server[i].host);
        assert_string_equal(a->server[i].store, b->server[i].store);
        assert_int_equal(a->server[i].port, b->server[i].port);
        assert_int_equal(a->server[i].shards, b->server[i].shards);
    }
    assert_string_equal(a->checkpoint.to, b->checkpoint.to);
    assert_true(a->checkpoint.every == b->checkpoint.every && a->checkpoint.keep == b->checkpoint.keep);
    assert_string_equal(a->data.train, b->data.train);
    assert_string_equal(a->data.test_labels, b->data.test_labels);
    assert_true(a->data.scale == b->data.scale && a->data.normalize == b->data.normalize);
    assert_true(a->data.standardize == b->data.standardize && a->data.index_base == b->data.index_base);
    assert_string_equal(a->data.label_base, b->data.label_base);
    assert_string_equal(a->data.test_negatives, b->data.test_negatives);
    assert_string_equal(a->data.validation, b->data.validation);
    assert_string_equal(a->data.validation_labels, b->data.validation_labels);
    assert_string_equal(a->data.validation_negatives, b->data.validation_negatives);
    assert_true(a->data.validation_share == b->data.validation_share);
    assert_string_equal(a->data.format, b->data.format);
    assert_string_equal(a->data.label, b->data.label);
    assert_string_equal(a->data.encoding, b->data.encoding);
    assert_string_equal(a->data.ignore, b->data.ignore);
    assert_string_equal(a->data.id, b->data.id);
    assert_string_equal(a->data.missing, b->data.missing);
    assert_string_equal(a->data.lists, b->data.lists);
    assert_string_equal(a->data.weight, b->data.weight);
    assert_string_equal(a->data.class_weight, b->data.class_weight);
    assert_string_equal(a->data.categories, b->data.categories);
    assert_string_equal(a->data.cache, b->data.cache);
    assert_string_equal(a->data.columns, b->data.columns);
    assert_true(a->data.by_columns == b->data.by_columns && a->data.new_columns == b->data.new_columns);
    assert_int_equal(a->data.missing_columns, b->data.missing_columns);
    assert_string_equal(a->data.names, b->data.names);
    assert_string_equal(a->data.interactions, b->data.interactions);
    assert_true(a->data.negatives == b->data.negatives && a->data.window == b->data.window);
    assert_int_equal(a->data.hash_bits, b->data.hash_bits);
    assert_true(a->data.words == b->data.words && a->data.min_count == b->data.min_count);
    assert_true(a->data.subsample == b->data.subsample);
    const struct dp_cluster_training *s = &a->training, *t = &b->training;
    assert_true(s->seed == t->seed && s->rate == t->rate && s->rate_end == t->rate_end);
    assert_int_equal(s->schedule, t->schedule);
    assert_true(s->warmup_steps == t->warmup_steps && s->decay == t->decay);
    assert_true(s->workers == t->workers && s->batch == t->batch && s->epochs == t->epochs);
    assert_true(s->fetch_every == t->fetch_every && s->push_every == t->push_every);
    assert_int_equal(s->accumulate, t->accumulate);
    assert_string_equal(s->consistency, t->consistency);
    assert_int_equal(s->work, t->work);
    assert_true(s->overlap == t->overlap && s->bf16_values == t->bf16_values);
    assert_int_equal(s->rate_by_staleness, t->rate_by_staleness);
    assert_true(s->pushes_max == t->pushes_max && s->run == t->run && s->threads == t->threads);
    assert_int_equal(s->blas_threads, t->blas_threads);
    assert_true(s->timeout_ms == t->timeout_ms && s->patience == t->patience);
    assert_int_equal(s->worker_timeout, t->worker_timeout);
    assert_string_equal(s->stop_at, t->stop_at);
    assert_string_equal(s->patience_metric, t->patience_metric);
    assert_string_equal(s->device, t->device);
    assert_int_equal(s->precision, t->precision);
    assert_string_equal(s->report, t->report);
    assert_string_equal(s->pace, t->pace);
    assert_string_equal(s->straggler, t->straggler);
    assert_int_equal(s->jitter, t->jitter);
    assert_true(memcmp(&s->optimizer, &t->optimizer, sizeof s->optimizer) == 0);
}

static void set_data(struct dp_cluster *c, size_t k)
{
    c->data.scale = 1.0 / 255;
    c->data.normalize = true;
    c->data.standardize = false;
    (void)snprintf(c->data.label_base, sizeof c->data.label_base, "1");
    (void)snprintf(c->data.encoding, sizeof c->data.encoding, "latin1");
    (void)snprintf(c->data.ignore, sizeof c->data.ignore, "a,b c");
    (void)snprintf(c->data.id, sizeof c->data.id, "key, \"1\"");
    (void)snprintf(c->data.missing, sizeof c->data.missing, "?,-");
    (void)snprintf(c->data.lists, sizeof c->data.lists, "tags,b c");
    (void)snprintf(c->data.weight, sizeof c->data.weight, "w");
    (void)snprintf(c->data.class_weight, sizeof c->data.class_weight, "yes=5,no=1");
    c->data.negatives = c->data.window = c->data.hash_bits = c->data.min_count = 7;
    c->data.words = DP_WORD_SIMPLE;
    c->data.subsample = 1e-5;
    (void)snprintf(c->data.categories, sizeof c->data.categories, "a b,\"c\"");
    (void)snprintf(c->data.cache, sizeof c->data.cache, "some where");
    (void)snprintf(c->data.columns, sizeof c->data.columns, "a file");
    c->data.by_columns = true;
    c->data.new_columns = c->data.missing_columns = DP_UNMATCHED_ACCEPT;
    (void)snprintf(c->data.names, sizeof c->data.names, "names of keys");
    (void)snprintf(c->data.interactions, sizeof c->data.interactions, "met");
    c->data.validation_share = k % 2 ? 0 : 0.1 + 0x1p-50;
    if (k % 2) { /* it is a share or a file */
        (void)snprintf(c->data.validation, sizeof c->data.validation, "v");
        (void)snprintf(c->data.validation_labels, sizeof c->data.validation_labels, "l");
        (void)snprintf(c->data.validation_negatives, sizeof c->data.validation_negatives, "n");
    }
    (void)snprintf(c->data.test, sizeof c->data.test, "t");
    (void)snprintf(c->data.test_labels, sizeof c->data.test_labels, "u");
}

static void written_reads_back_equal(void **state)
{
    struct dp_cluster *c = NULL, *back = NULL;
    struct dp_error err = {0};
    static const char *const kinds[] = {"sgd", "momentum", "adagrad", "adam", "adamw", "ftrl"};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        char text[1000];
        (void)snprintf(text, sizeof text, OPT("kind = \"%s\"; l2 = 0.1;"), kinds[k]);
        assert_int_equal(read_text(text, &c, &err), DP_OK);
        c->id = UINT64_MAX - k;
        c->training.seed = (UINT64_C(1) << 63) + k;
        c->training.warmup_steps = UINT64_C(1) << 40;
        c->training.rate = 0.1 + 0x1p-50;
        c->training.rate_end = 1e-7;
        c->training.schedule = DP_SCHEDULE_CONTINUE;
        c->training.decay = DP_DECAY_COSINE;
        set_data(c, k);
        (void)snprintf(c->training.stop_at, sizeof c->training.stop_at, "hr@10:0.5");
        (void)snprintf(c->training.patience_metric, sizeof c->training.patience_metric, "ndcg@10");
        c->training.patience = 1000000;
        c->training.overlap = false;
        c->training.accumulate = 12;
        c->training.blas_threads = 9;
        c->training.rate_by_staleness = true;
        if (k % 2) {
            c->training.work = DP_CLUSTER_LEASED;
        } else {
            (void)snprintf(c->training.consistency, sizeof c->training.consistency, "ssp:1000000");
            c->training.worker_timeout = 86400;
        }
        c->training.jitter = DP_JITTER_UNIFORM;
        (void)snprintf(c->training.pace, sizeof c->training.pace, "1.25ms");
        (void)snprintf(c->training.straggler, sizeof c->training.straggler, "0:10x");
        c->training.precision = DP_CLUSTER_BF16;
        (void)snprintf(c->training.device, sizeof c->training.device, "cuda:12");
        c->training.optimizer.l2 = nextafterf(0.1f, 1);
        (void)snprintf(c->data.train, sizeof c->data.train,
                       "a \"quoted\" \\ name\nwith \x7f and \xc3\xa4; // and #");
        (void)snprintf(c->training.report, sizeof c->training.report, "%0500d", 7);
        assert_int_equal(dp_cluster_write(c, file_path, &err), DP_OK);
        assert_int_equal(dp_cluster_read(file_path, &back, &err), DP_OK);
        assert_same(c, back);
        dp_cluster_free(&c);
        dp_cluster_free(&back);
    }
}

/* Servers on one host take the next ports, each host from the first on. */
static void metrics_have_an_address_for_each_server(void **state)
{
    static const struct {
        const char *text, *host;
        uint16_t port[4];
    } cases[] = {{"9600", "127.0.0.1", {9600, 9600, 9601, 9602}},
                 {":9600", "127.0.0.1", {9600, 9600, 9601, 9602}},
                 {"localhost:9600", "127.0.0.1", {9600, 9600, 9601, 9602}},
                 {"0.0.0.0:65533", "0.0.0.0", {65533, 65533, 65534, 65535}},
                 {"[::1]:9600", "::1", {9600, 9600, 9601, 9602}},
                 {"127.0.0.1:0", "127.0.0.1", {0, 0, 0, 0}}};
    struct dp_cluster *c = NULL;
    struct dp_error err = {0};
    struct dp_metrics_address at;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        (void)snprintf(
            text, sizeof text,
            TOP DATA
            "metrics = \"%s\"; servers = ({ host = \"a\"; port = 1; store = \"s\"; }, { host = \"b\"; "
            "port = 1; store = \"s\"; }, { host = \"b\"; port = 5; store = \"t\"; }, { host = \"b\"; "
            "port = 9; store = \"u\"; });\n",
            cases[i].text);
        assert_int_equal(read_text(text, &c, &err), DP_OK);
        for (uint32_t server = 0; server < 4; server++) {
            assert_int_equal(dp_metrics_address_of(c, server, &at, &err), DP_OK);
            assert_string_equal(at.host, cases[i].host);
            assert_int_equal(at.port, cases[i].port[server]);
        }
        (void)snprintf(c->metrics, sizeof c->metrics, "65534");
        assert_int_equal(dp_cluster_check(c, &err), DP_ARGUMENT);
        assert_non_null(strstr(err.text, "server 3 would get 65536"));
        dp_cluster_free(&c);
    }
    assert_int_equal(
        read_text(TOP DATA "metrics = \"9600\"; servers = { count = 3; store = \"s\"; };\n", &c, &err),
        DP_OK);
    assert_int_equal(dp_metrics_address_of(c, 2, &at, &err), DP_OK);
    assert_true(at.port == 9600 && at.more == 2);
    dp_cluster_free(&c);
}

/* Written below a directory, moved with it, read: what lay below lies below its new place, what lay outside stays. */
static void paths_below_the_file_move_with_it(void **state)
{
    char from[96], to[96], conf[128], link[128], expected[160];
    struct dp_cluster *c = NULL, *back = NULL;
    struct dp_error err = {0};
    (void)snprintf(from, sizeof from, "%s/from", dir);
    (void)snprintf(to, sizeof to, "%s/to", dir);
    assert_int_equal(mkdir(from, 0700), 0);
    assert_int_equal(read_text(GOOD, &c, &err), DP_OK);
    assert_int_equal(c->relative_to, DP_CLUSTER_START);
    c->relative_to = DP_CLUSTER_FILE;
    (void)snprintf(c->server[0].store, sizeof c->server[0].store, "%s/store/s", from);
    (void)snprintf(c->data.train, sizeof c->data.train, "%s-outside/data", from);
    (void)snprintf(c->data.test, sizeof c->data.test, "%s/../data", from);
    (void)snprintf(c->training.report, sizeof c->training.report, "%s//report.json", from);
    (void)snprintf(conf, sizeof conf, "%s/c.conf", from);
    assert_int_equal(dp_cluster_write(c, conf, &err), DP_OK);
    assert_int_equal(rename(from, to), 0);
    (void)snprintf(conf, sizeof conf, "%s/c.conf", to);
    assert_int_equal(dp_cluster_read(conf, &back, &err), DP_OK);
    (void)snprintf(expected, sizeof expected, "%s/store/s", to);
    assert_string_equal(back->server[0].store, expected);
    assert_string_equal(back->data.train, c->data.train);
    assert_string_equal(back->data.test, c->data.test);
    assert_string_equal(back->data.cache, "");
    (void)snprintf(expected, sizeof expected, "%s/report.json", to);
    assert_string_equal(back->training.report, expected);
    /* Through a link from another directory they are the same. */
    dp_cluster_free(&back);
    (void)snprintf(link, sizeof link, "%s/link.conf", dir);
    assert_int_equal(symlink("to/c.conf", link), 0);
    assert_int_equal(dp_cluster_read(link, &back, &err), DP_OK);
    assert_string_equal(back->training.report, expected);
    assert_int_equal(unlink(link), 0);

    (void)snprintf(c->server[0].store, sizeof c->server[0].store, "store");
    assert_int_equal(dp_cluster_write(c, conf, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, "'servers.store' is \"store\", neither absolute nor below"));
    assert_int_equal(unlink(conf), 0);
    assert_int_equal(rmdir(to), 0);
    dp_cluster_free(&back);
    dp_cluster_free(&c);
}

static void categories_may_be_an_array(void **state)
{
    struct dp_cluster *c = NULL;
    struct dp_error err = {0};
    assert_int_equal(
        read_text(TOP SERVERS "data = { train = \"a\"; categories = [\"x\", \"y z\", \"w\"]; };", &c, &err),
        DP_OK);
    assert_string_equal(c->data.categories, "x,y z,w");
    dp_cluster_free(&c);
    char text[4096], *end = text;
    end += sprintf(end, TOP SERVERS "data = { train = \"a\"; categories = [\"x\"");
    for (int i = 0; i < 511; i++)
        end += sprintf(end, ",\"%c\"", 'a' + i % 26);
    (void)sprintf(end, "]; };"); /* 1 + 2 * 511 bytes: fits; with another one it does not */
    assert_int_equal(read_text(text, &c, &err), DP_OK);
    assert_int_equal(strlen(c->data.categories), 1023);
    dp_cluster_free(&c);
    (void)sprintf(end, ",\"a\"]; };");
    assert_int_equal(read_text(text, &c, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, "'data.categories' is longer than 1023 bytes"));
}

static void struct_without_an_id_gets_that_of_its_name(void **state)
{
    struct dp_cluster *c = NULL, *back = NULL;
    struct dp_error err = {0};
    assert_int_equal(read_text(GOOD, &c, &err), DP_OK);
    uint64_t id = c->id;
    c->id = 0;
    assert_int_equal(dp_cluster_write(c, file_path, &err), DP_OK);
    assert_int_equal(dp_cluster_read(file_path, &back, &err), DP_OK);
    assert_true(back->id == id);
    dp_cluster_free(&back);

    c->training.epochs = 1000001; /* refused, and the file is the old one */
    assert_int_equal(dp_cluster_write(c, file_path, &err), DP_ARGUMENT);
    assert_int_equal(dp_cluster_read(file_path, &back, &err), DP_OK);
    c->training.epochs = 1;
    assert_int_equal(dp_cluster_write(c, "/nonexistent/x.conf", &err), DP_IO);
    dp_cluster_free(&back);
    dp_cluster_free(&c);
}

static char *slurp(const char *path)
{
    static char text[1 << 16];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    assert_int_equal(fclose(f), 0);
    return text;
}

static void example_file_is_read_and_has_every_key(void **state)
{
    struct dp_cluster *c = NULL;
    struct dp_error err = {0};
    assert_int_equal(dp_cluster_read("deploy/cluster.example.conf", &c, &err), DP_OK);
    assert_int_equal(c->server_count, 2);
    assert_int_equal(dp_cluster_shards(c), 4);
    c->training.rate_end = 1e-7; /* for ftrl */
    static const char *const kinds[] = {"sgd", "adagrad", "adam", "ftrl"};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        assert_true(dp_optimizer_named(kinds[k], &c->training.optimizer));
        assert_int_equal(dp_cluster_write(c, file_path, &err), DP_OK);
        char *written = strdup(slurp(file_path)), *next = written;
        const char *example = slurp("deploy/cluster.example.conf");
        while (next) {
            char *line = next, key[64] = "";
            next = strchr(next, '\n');
            if (next)
                *next++ = '\0';
            if (sscanf(line, " %60[a-z0-9_] =", key) == 1) {
                strcat(key, " =");
                if (!strstr(example, key))
                    fail_msg("the example file lacks '%s'", key);
            }
        }
        free(written);
    }
    dp_cluster_free(&c);
}

static void keys_are_set_from_text_with_the_checks_of_the_file(void **state)
{
    struct dp_cluster c;
    struct dp_error err = {0};
    dp_cluster_defaults(&c);
    assert_int_equal(dp_cluster_set(&c, "training.epochs", "7", "--epochs", &err), DP_OK);
    assert_int_equal(dp_cluster_set(&c, "training.seed", "18446744073709551615", "--seed", &err), DP_OK);
    assert_int_equal(dp_cluster_set(&c, "training.rate", "0.5", "--rate", &err), DP_OK);
    assert_int_equal(dp_cluster_set(&c, "training.decay", "cosine", "--rate decay", &err), DP_OK);
    assert_int_equal(dp_cluster_set(&c, "training.optimizer.kind", "ftrl", "--optimizer", &err), DP_OK);
    assert_int_equal(dp_cluster_set(&c, "training.optimizer.l1", "0.25", "--optimizer l1", &err), DP_OK);
    assert_int_equal(dp_cluster_set(&c, "training.overlap", "false", "--no-overlap", &err), DP_OK);
    assert_int_equal(dp_cluster_set(&c, "cache_bytes", "2MiB", "--cache-bytes", &err), DP_OK);
    assert_int_equal(dp_cluster_set(&c, "data.train", "x", "--train", &err), DP_OK);
    assert_int_equal(dp_cluster_set(&c, "model", "m", "--model", &err), DP_OK);
    assert_true(c.training.epochs == 7 && c.training.seed == UINT64_MAX && c.training.rate == 0.5);
    assert_true(c.training.decay == DP_DECAY_COSINE && c.training.optimizer.l1 == 0.25f);
    assert_true(!c.training.overlap && c.cache_bytes == 2u << 20);
    assert_string_equal(c.data.train, "x");
    assert_string_equal(c.model, "m");
    static const char *const bad[][3] = {
        {"training.epochs", "1000001", "--x"},
        {"training.epochs", "seven", "--x"},
        {"training.rate", "nan", "--x"},
        {"training.rate", "0", "--x"},
        {"training.decay", "steep", "--x"},
        {"cache_bytes", "1KiB", "--x"},
        {"cache_bytes", "5XB", "--x"},
        {"training.overlap", "1", "--x"},
        {"data.train", "", "--x"},
        {"training.optimizer.kind", "x", "--x"},
        {"training.optimizer.beta1", "0.5", "--x is not a setting"},
        {"training.nothing", "1", "--x"},
        {"nothing", "1", "--x"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (dp_cluster_set(&c, bad[i][0], bad[i][1], "--x", &err) != DP_ARGUMENT ||
            !strstr(err.text, bad[i][2]))
            fail_msg("%s = %s: '%s'", bad[i][0], bad[i][1], err.text);
    }
}

static void endpoints_follow_the_order_of_the_file(void **state)
{
    struct dp_cluster *c = NULL;
    struct dp_error err = {0};
    char text[DP_HOST_MAX + 32];
    assert_int_equal(read_text(TOP DATA "servers = ({ host = \"a\"; port = 10; shards = 2; store = \"a\"; },"
                                        "{ host = \"::1\"; port = 20; store = \"b\"; },"
                                        "{ host = \"ipc:///run/my sockets/s\"; port = 20; store = \"b\"; });",
                               &c, &err),
                     DP_OK);
    assert_int_equal(dp_cluster_shards(c), 4);
    static const char *const want[] = {"tcp://a:11", "tcp://a:12", "tcp://[::1]:21",
                                       "ipc:///run/my sockets/s-21"};
    for (uint32_t i = 0; i < 4; i++) {
        dp_cluster_shard_endpoint(c, i, text, sizeof text);
        assert_string_equal(text, want[i]);
    }
    dp_cluster_control_endpoint(c, 1, text, sizeof text);
    assert_string_equal(text, "tcp://[::1]:20");
    dp_cluster_free(&c);
}

static void threads_fetch_and_push_together(void **state)
{
    static const struct {
        uint32_t threads, fetch, push, accumulate, fetched, pushed;
    } cases[] = {
        {1, 1, 1, 1, 1, 1}, {1, 3, 2, 1, 3, 2},    {1, 1, 1, 5, 5, 5},    {2, 1, 1, 1, 16, 16},
        {2, 4, 1, 1, 4, 4}, {2, 1, 32, 1, 32, 32}, {20, 1, 1, 1, 20, 20}, {3, 6, 6, 1, 6, 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct dp_cluster_training t = {.threads = cases[i].threads,
                                              .fetch_every = cases[i].fetch,
                                              .push_every = cases[i].push,
                                              .accumulate = cases[i].accumulate};
        assert_int_equal(dp_cluster_fetched_together(&t), cases[i].fetched);
        assert_int_equal(dp_cluster_pushed_together(&t), cases[i].pushed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(least_file_has_the_defaults),
        cmocka_unit_test(values_come_as_written),
        cmocka_unit_test(written_reads_back_equal),
        cmocka_unit_test(categories_may_be_an_array),
        cmocka_unit_test(struct_without_an_id_gets_that_of_its_name),
        cmocka_unit_test(metrics_have_an_address_for_each_server),
        cmocka_unit_test(paths_below_the_file_move_with_it),
        cmocka_unit_test(example_file_is_read_and_has_every_key),
        cmocka_unit_test(threads_fetch_and_push_together),
        cmocka_unit_test(keys_are_set_from_text_with_the_checks_of_the_file),
        cmocka_unit_test(endpoints_follow_the_order_of_the_file),
    };
    return cmocka_run_group_tests_name("cluster", tests, setup, teardown);
}
