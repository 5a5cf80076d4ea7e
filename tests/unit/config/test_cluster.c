/* cluster: what is written reads back equal; the example file is read and explains every key; whatever is
 * wrong in a file is refused by file, line and key. */
#include "tests/lib/test.h"

#include "common/config/cluster.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* libconfig 1.5 forgets the buffer of a string that never ends; the process that reads such a file ends
 * anyway. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:strbuf_append\n";
}

static char dir[] = "/tmp/dp_test_cluster_XXXXXX";
static char file_path[64];

static void write_file(const char *text, size_t size)
{
    FILE *f = fopen(file_path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static enum dp_status read_text(const char *text, struct dp_cluster **out, struct dp_error *err)
{
    write_file(text, strlen(text));
    return dp_cluster_read(file_path, out, err);
}

#define TOP                                                                                                  \
    "name = \"t\";\n"                                                                                        \
    "model = \"logistic\";\n"
#define FIFTY    "01234567890123456789012345678901234567890123456789"
#define SERVERS  "servers = ({ host = \"127.0.0.1\"; port = 5700; store = \"s\"; });\n"
#define DATA     "data = { train = \"a\"; };\n"
#define GOOD     TOP SERVERS DATA
#define TRAIN(x) GOOD "training = {\n" x "\n};\n"
#define OPT(x)   TRAIN("optimizer = {\n" x "\n};")

static void least_file_has_the_defaults(void **state)
{
    (void)state;
    struct dp_cluster *c = NULL, d;
    struct dp_error err = {0};
    assert_int_equal(read_text(GOOD, &c, &err), DP_OK);
    dp_cluster_defaults(&d);
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
    (void)state;
    struct dp_cluster *c = NULL;
    struct dp_error err = {0};
    static const char text[] = TOP
        "id = \"18446744073709551615\"; generation = 0xFFFFFFFFFFFFFFFFL; cache_bytes = 8589934592;\n" SERVERS
            DATA "training = { seed = 5000000000; warmup_steps = 5000000000L; rate = 1; epochs = 7L; batch = "
        "0x10; overlap = false;\n"
        "decay = \"inverse-sqrt\"; optimizer = { kind = \"ftrl\"; l1 = 0.1; l2 = 2; }; };";
    assert_int_equal(read_text(text, &c, &err), DP_OK);
    assert_true(c->id == UINT64_MAX && c->generation == UINT64_MAX && c->cache_bytes == 8589934592u);
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

struct bad {
    const char *text;
    const char *line; /* ":3: " */
    const char *key;
};

static void wrong_files_are_refused_by_line_and_key(void **state)
{
    (void)state;
    static const struct bad bad[] = {
        /* unknown, at the top, in groups and lists */
        {GOOD "modle = \"x\";\n", ":5: ", "unknown key 'modle'; did you mean 'model'?"},
        {GOOD "zzzzzz = 1;\n", ":5: ", "unknown key 'zzzzzz'"},
        {TRAIN("epoch = 3;"), ":6: ", "unknown key 'training.epoch'; did you mean 'training.epochs'?"},
        {TOP SERVERS "data = { train = \"a\";\n tset = \"b\"; };",
         ":5: ", "'data.tset'; did you mean 'data.test'"},
        {TOP DATA "servers = ({ host = \"h\"; port = 1; store = \"s\";\n prot = 2; });",
         ":5: ", "'servers.prot'"},
        {OPT("kind = \"adam\";\nbeta3 = 0.1;"), ":8: ", "'training.optimizer.beta3'"},
        {OPT("kind = \"sgd\";\nbeta1 = 0.1;"),
         ":8: ", "'training.optimizer.beta1' is not a setting of kind \"sgd\""},
        /* missing */
        {"", ".conf: missing", "missing key 'name'"},
        {"name = \"t\";\n" SERVERS DATA, ".conf: missing", "missing key 'model'"},
        {TOP DATA, ".conf: missing", "missing key 'servers'"},
        {TOP SERVERS, ".conf: missing", "missing key 'data'"},
        {TOP SERVERS "data = {};", ":4: ", "missing key 'data.train'"},
        {TOP DATA "servers = (\n{ host = \"h\"; store = \"s\"; });", ":5: ", "missing key 'servers.port'"},
        {OPT("decay = 0.1;"), ":6: ", "missing key 'training.optimizer.kind'"},
        /* of a wrong type */
        {TRAIN("epochs = \"7\";"), ":6: ", "'training.epochs' must be an integer, not a string"},
        {TRAIN("epochs = 7.0;"), ":6: ", "'training.epochs' must be an integer, not a number"},
        {TRAIN("epochs = [1, 2];"), ":6: ", "'training.epochs' must be an integer"},
        {TRAIN("rate = \"0.1\";"), ":6: ", "'training.rate' must be a number"},
        {TRAIN("overlap = 1;"), ":6: ", "'training.overlap' must be true or false"},
        {TRAIN("report = 1;"), ":6: ", "'training.report' must be a string"},
        {TRAIN("optimizer = \"adam\";"), ":6: ", "'training.optimizer' must be a group"},
        {OPT("kind = 3;"), ":7: ", "'training.optimizer.kind' must be a string"},
        {GOOD "training = 4;", ":5: ", "'training' must be a group"},
        {TOP SERVERS "data = ();", ":4: ", "'data' must be a group"},
        {TOP DATA "servers = { };", ":4: ", "'servers' must be a list"},
        {TOP DATA "servers = (\n3);", ":5: ", "must be a group"},
        {GOOD "cache_bytes = 1.5;", ":5: ", "'cache_bytes' must be an integer or a string"},
        {TRAIN("seed = \"many\";"), ":6: ", "'training.seed'"},
        {TRAIN("accumulate = 2; push_every = 2;"), ".conf", "'training.accumulate' is 2, which is both"},
        {TRAIN("accumulate = 0;"), ":6: ", "'training.accumulate'"},
        /* devices */
        {TRAIN("device = \"gpu\";"), ".conf", "'training.device' is \"gpu\", but must be cpu, cuda, cuda:N"},
        {TRAIN("device = \"cuda:\";"), ".conf", "'training.device'"},
        {TRAIN("device = \"cuda:0x\";"), ".conf", "'training.device'"},
        {TRAIN("device = \"cuda:each1\";"), ".conf", "cuda:each (a GPU for each worker) or auto"},
        {TRAIN("device = \"cuda:12345\";"), ".conf", "'training.device'"},
        {TRAIN("device = \"cuda:0\"; precision = \"f16\";"), ":6: ", "but must be f32, tf32 or bf16"},
        {TRAIN("precision = \"bf16\";"), ".conf",
         "'training.precision' is bf16, but the CPU computes in f32"},
        /* early ends */
        {TRAIN("stop_at = \"auc\";"), ".conf", "'training.stop_at' is 'auc', but must be METRIC:VALUE"},
        {TRAIN("stop_at = \":1\";"), ".conf", "must be METRIC:VALUE"},
        {TRAIN("stop_at = \"acuracy:0.5\";"), ".conf", "no metric 'acuracy' (did you mean 'accuracy'?)"},
        {TRAIN("stop_at = \"auc:1.5\";"), ".conf", "auc is never above 1"},
        {TRAIN("stop_at = \"hr@10:0\";"), ".conf", "never below 0"},
        {TRAIN("stop_at = \"recall@10:0.1\";"), ".conf",
         "'training.stop_at' looks at the first 10 items, but 'training.top_k' is 20: give it 10"},
        {TRAIN("patience = 2; patience_metric = \"ndcg@5\";"), ".conf",
         "'training.patience_metric' looks at"},
        {TRAIN("stop_at = \"recall@x:0.1\";"), ".conf", "no metric 'recall@x'"},
        {TRAIN("stop_at = \"logloss:-1\";"), ".conf", "logloss is never 0 or below"},
        {TRAIN("stop_at = \"logloss:nan\";"), ".conf", "'training.stop_at'"},
        {TRAIN("stop_at = \"logloss:0.4\";"), ".conf", "there is nothing to evaluate"},
        {TRAIN("patience = 3;"), ".conf", "'training.patience' looks at a figure"},
        {TRAIN("patience_metric = \"auc\";"), ".conf", "says no number of epochs"},
        {TRAIN("patience = 1; patience_metric = \"zzz\";"), ".conf", "no metric 'zzz'; those that there are"},
        {TOP SERVERS "data = { train = \"a\"; validation = \"b\"; validation_share = 0.1; };", ".conf",
         "give one of them"},
        /* of a file that is not named */
        {TOP SERVERS "data = { train = \"a\"; test_labels = \"b\"; };", ".conf",
         "'data.test_labels' names a file, but 'data.test' none"},
        {TOP SERVERS "data = { train = \"a\"; columns = \"a\"; };", ".conf",
         "'data.columns' is \"a\", a file of the data"},
        {TOP SERVERS "data = { train = \"a\"; test = \"b\"; names = \"b\"; };", ".conf",
         "'data.names' is \"b\", a file of the data"},
        {TOP SERVERS "data = { train = \"a\"; test_negatives = \"b\"; };", ".conf", "'data.test_negatives'"},
        {TOP SERVERS "data = { train = \"a\"; test = \"b\"; validation_labels = \"b\"; };", ".conf",
         "'data.validation_labels' names a file, but 'data.validation'"},
        {TOP SERVERS "data = { train = \"a\"; validation_share = 0.1; validation_negatives = \"b\"; };",
         ".conf", "'data.validation_negatives'"},
        {TRAIN("rate_end = 0.1;"), ".conf", "'training.rate_end' is 0.1, but decay \"none\" does not end"},
        {TRAIN("rate_end = 0.1; decay = \"inverse-sqrt\";"), ".conf", "decay \"inverse-sqrt\""},
        {TOP SERVERS "data = { train = \"a\"; validation_share = 0.95; };",
         ":4: ", "'data.validation_share'"},
        /* out of range */
        {TOP DATA "servers = ();", ":4: ", "'servers' has 0 entries"},
        {TRAIN("epochs = 1000001;"), ":6: ", "'training.epochs' is 1000001, but must be 0 .. 1000000"},
        {TRAIN("epochs = -1;"), ":6: ", "'training.epochs' is -1"},
        {TRAIN("epochs = 4294967297;"), ":6: ", "'training.epochs' is 4294967297"},
        {TRAIN("seed = -1;"), ":6: ", "'training.seed' is -1"},
        {TRAIN("rate = 0.0;"), ":6: ", "'training.rate' is 0"},
        {TRAIN("rate = 1e999;"), ":6: ", "'training.rate' is inf"},
        {TRAIN("run = 2147483648;"), ":6: ", "'training.run'"},
        {TRAIN("decay = \"slow\";"), ":6: ", "'training.decay' is \"slow\""},
        {OPT("kind = \"adem\";"), ":7: ", "'training.optimizer.kind' is \"adem\""},
        {OPT("kind = \"adam\"; beta1 = 1.0;"), ":7: ", "'training.optimizer.beta1' is 1"},
        {OPT("kind = \"sgd\"; l2 = 1e39;"), ":7: ", "'training.optimizer.l2' is inf"},
        {GOOD "id = 0;", ":5: ", "'id' is 0"},
        {GOOD "cache_bytes = \"12XB\";", ":5: ", "'cache_bytes'"},
        {GOOD "cache_bytes = 5;", ":5: ", "'cache_bytes' is 5"},
        {TOP DATA "servers = ({ host = \"h\"; port = 65536; store = \"s\"; });",
         ":4: ", "'servers.port' is 65536"},
        {TOP SERVERS "data = { train = \"\"; };", ":4: ", "'data.train' is empty"},
        {TOP SERVERS "data = { train = [\"a\"]; };", ":4: ", "'data.train' must be a string"},
        {TOP SERVERS "data = { train = \"a\"; categories = [1]; };", ":4: ", "must be an array of strings"},
        {TOP SERVERS "data = { train = \"a\"; categories = [\"a,b\"]; };", ":4: ", "strings without commas"},
        {TOP SERVERS "data = { train = \"a\"; categories = 1; };", ":4: ", "must be an array of strings"},
        {"name = \"0123456789012345678901234567890123456789012345678\";", ":1: ", "'name' is longer than 47"},
        /* doubled, and no libconfig at all */
        {TRAIN("batch = 3;\nbatch = 4;"), ":7: ", "batch = 4;"},
        {GOOD "model = \"x\";", ":5: ", "model = \"x\""},
        {GOOD "training = {\n batch = ;\n};", ":6: ", "batch = ;"},
        {GOOD "training = { batch = 3;", ":", "syntax error"},
        {GOOD "%%%", ":5: ", "%%%"},
        {TRAIN("seed = 99999999999999999999999;"), ":6: ", "more than 64 bits"},
        {TRAIN("/* 1\n2 */ seed = -99999999999999999999999L;"), ":7: ", "more than 64 bits"},
        {TRAIN("seed = 0x1FFFFFFFFFFFFFFFFL;"), ":6: ", "more than 64 bits"},
        {TRAIN("# 99999999999999999999999\n// 99999999999999999999999 \"\nbatch = 0x1FFFFFFFF;"),
         ":8: ", "'training.batch' is 8589934591"},
        {GOOD "name2 = \"abc", ":", "syntax error"},
        {GOOD "\n@include \"other\"\n", ":6: ", "@include"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct dp_cluster *c = NULL;
        struct dp_error err = {0};
        enum dp_status st = read_text(bad[i].text, &c, &err);
        if (st != DP_ARGUMENT || c || !strstr(err.text, file_path) || !strstr(err.text, bad[i].line) ||
            !strstr(err.text, bad[i].key))
            fail_msg("case %zu: status %d, '%s' lacks '%s' or '%s'", i, st, err.text, bad[i].line,
                     bad[i].key);
        assert_int_equal(read_text(bad[i].text, &c, NULL), DP_ARGUMENT);
    }
}

static void facts_about_several_keys_are_checked(void **state)
{
    (void)state;
    static const struct bad bad[] = {
        {TOP DATA "servers = ({ host = \"h\"; port = 5700; shards = 2; store = \"a\"; },"
                  "{ host = \"h\"; port = 5702; store = \"b\"; });",
         "", "overlap"},
        {TOP DATA "servers = ({ host = \"h\"; port = 5700; store = \"a\"; },"
                  "{ host = \"h\"; port = 5702; store = \"a\"; });",
         "", "share the directory"},
        {TOP DATA "servers = ({ host = \"h\"; port = 65530; shards = 6; store = \"a\"; });", "",
         "over 65535"},
        {TOP DATA "servers = ({ host = \"h h\"; port = 1; store = \"a\"; });", "", "'servers.host'"},
        {TOP DATA "servers = ({ host = \"ipc://h\"; port = 1; store = \"a\"; });", "", "'servers.host'"},
        {TOP DATA "servers = ({ host = \"ipc:///" FIFTY FIFTY "2\"; port = 1; store = \"a\"; });", "",
         "at most 101 bytes"},
        {"name = \"a b\"; model = \"m\";" SERVERS DATA, "", "'name'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct dp_cluster *c = NULL;
        struct dp_error err = {0};
        if (read_text(bad[i].text, &c, &err) != DP_ARGUMENT || !strstr(err.text, bad[i].key))
            fail_msg("case %zu: '%s' lacks '%s'", i, err.text, bad[i].key);
    }
    struct dp_cluster *c = NULL;
    struct dp_error err = {0};
    assert_int_equal(read_text(TOP DATA
                               "servers = ({ host = \"h\"; port = 5700; shards = 2; store = \"a\"; },"
                               "{ host = \"h\"; port = 5703; store = \"b\"; });",
                               &c, &err),
                     DP_OK);
    dp_cluster_free(&c);
}

static void what_is_no_text_file_is_refused(void **state)
{
    (void)state;
    struct dp_cluster *c = NULL;
    struct dp_error err = {0};
    assert_int_equal(dp_cluster_read("/nonexistent/cluster.conf", &c, &err), DP_IO);
    assert_non_null(strstr(err.text, "/nonexistent/cluster.conf"));
    assert_int_equal(dp_cluster_read(dir, &c, &err), DP_ARGUMENT);
    assert_int_equal(dp_cluster_read("/dev/null", &c, &err), DP_ARGUMENT);
    write_file("name\0= 3;", 9);
    assert_int_equal(dp_cluster_read(file_path, &c, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, "0 byte"));
    assert_int_equal(truncate(file_path, 5 << 20), 0);
    assert_int_equal(dp_cluster_read(file_path, &c, &err), DP_ARGUMENT);
    assert_null(c);
}

/* Field by field: bytes after a text's end are nobody's. */
static void assert_same(const struct dp_cluster *a, const struct dp_cluster *b)
{
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->model, b->model);
    assert_true(a->id == b->id && a->generation == b->generation && a->cache_bytes == b->cache_bytes);
    assert_int_equal(a->server_count, b->server_count);
    for (uint32_t i = 0; i < a->server_count; i++) {
        assert_string_equal(a->server[i].host, b->server[i].host);
        assert_string_equal(a->server[i].store, b->server[i].store);
        assert_int_equal(a->server[i].port, b->server[i].port);
        assert_int_equal(a->server[i].shards, b->server[i].shards);
    }
    assert_string_equal(a->data.train, b->data.train);
    assert_string_equal(a->data.test_labels, b->data.test_labels);
    assert_true(a->data.scale == b->data.scale && a->data.normalize == b->data.normalize);
    assert_true(a->data.standardize == b->data.standardize);
    assert_string_equal(a->data.label_base, b->data.label_base);
    assert_int_equal(a->data.index_base, b->data.index_base);
    assert_string_equal(a->data.test_negatives, b->data.test_negatives);
    assert_string_equal(a->data.validation, b->data.validation);
    assert_string_equal(a->data.validation_labels, b->data.validation_labels);
    assert_string_equal(a->data.validation_negatives, b->data.validation_negatives);
    assert_true(a->data.validation_share == b->data.validation_share);
    assert_string_equal(a->data.format, b->data.format);
    assert_string_equal(a->data.label, b->data.label);
    assert_string_equal(a->data.categories, b->data.categories);
    assert_string_equal(a->data.cache, b->data.cache);
    assert_string_equal(a->data.columns, b->data.columns);
    assert_string_equal(a->data.names, b->data.names);
    assert_true(a->data.negatives == b->data.negatives && a->data.window == b->data.window);
    assert_int_equal(a->data.hash_bits, b->data.hash_bits);
    const struct dp_cluster_training *s = &a->training, *t = &b->training;
    assert_true(s->seed == t->seed && s->rate == t->rate && s->rate_end == t->rate_end);
    assert_true(s->warmup_steps == t->warmup_steps && s->decay == t->decay);
    assert_true(s->workers == t->workers && s->batch == t->batch && s->epochs == t->epochs);
    assert_true(s->fetch_every == t->fetch_every && s->push_every == t->push_every);
    assert_int_equal(s->accumulate, t->accumulate);
    assert_true(s->overlap == t->overlap && s->bf16_values == t->bf16_values);
    assert_true(s->pushes_max == t->pushes_max && s->run == t->run && s->threads == t->threads);
    assert_true(s->timeout_ms == t->timeout_ms && s->patience == t->patience);
    assert_string_equal(s->stop_at, t->stop_at);
    assert_string_equal(s->patience_metric, t->patience_metric);
    assert_string_equal(s->device, t->device);
    assert_int_equal(s->precision, t->precision);
    assert_string_equal(s->report, t->report);
    assert_true(memcmp(&s->optimizer, &t->optimizer, sizeof s->optimizer) == 0);
}

static void written_reads_back_equal(void **state)
{
    (void)state;
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
        c->training.decay = DP_DECAY_COSINE;
        c->data.scale = 1.0 / 255;
        c->data.normalize = true;
        c->data.standardize = false;
        (void)snprintf(c->data.label_base, sizeof c->data.label_base, "1");
        c->data.negatives = c->data.window = c->data.hash_bits = 7;
        (void)snprintf(c->data.categories, sizeof c->data.categories, "a b,\"c\"");
        (void)snprintf(c->data.cache, sizeof c->data.cache, "some where");
        (void)snprintf(c->data.columns, sizeof c->data.columns, "a file");
        (void)snprintf(c->data.names, sizeof c->data.names, "names of keys");
        c->data.validation_share = k % 2 ? 0 : 0.1 + 0x1p-50;
        if (k % 2) { /* it is a share or a file */
            (void)snprintf(c->data.validation, sizeof c->data.validation, "v");
            (void)snprintf(c->data.validation_labels, sizeof c->data.validation_labels, "l");
            (void)snprintf(c->data.validation_negatives, sizeof c->data.validation_negatives, "n");
        }
        (void)snprintf(c->data.test, sizeof c->data.test, "t");
        (void)snprintf(c->data.test_labels, sizeof c->data.test_labels, "u");
        (void)snprintf(c->training.stop_at, sizeof c->training.stop_at, "hr@10:0.5");
        (void)snprintf(c->training.patience_metric, sizeof c->training.patience_metric, "ndcg@10");
        c->training.patience = 1000000;
        c->training.overlap = false;
        c->training.accumulate = 12;
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

/* Written below a directory, moved with it, read: what lay below lies below its new place, what lay outside stays. */
static void paths_below_the_file_move_with_it(void **state)
{
    (void)state;
    char from[96], to[96], conf[128], expected[160];
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
    (void)state;
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
    (void)state;
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
    (void)state;
    struct dp_cluster *c = NULL;
    struct dp_error err = {0};
    assert_int_equal(dp_cluster_read("deploy/cluster.example.conf", &c, &err), DP_OK);
    assert_int_equal(c->server_count, 2);
    assert_int_equal(dp_cluster_shards(c), 4);
    static const char *const kinds[] = {"sgd", "adagrad", "adam", "ftrl"};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        c->training.optimizer =
            dp_optimizer_defaults((enum dp_optimizer_kind)dp_optimizer_from_name(kinds[k]));
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
    (void)state;
    struct dp_cluster c;
    struct dp_error err = {0};
    dp_cluster_defaults(&c);
    assert_int_equal(dp_cluster_set(&c, "training.epochs", "7", "--epochs", &err), DP_OK);
    assert_int_equal(dp_cluster_set(&c, "training.seed", "18446744073709551615", "--seed", &err), DP_OK);
    assert_int_equal(dp_cluster_set(&c, "training.rate", "0.5", "--rate", &err), DP_OK);
    assert_int_equal(dp_cluster_set(&c, "training.decay", "cosine", "--decay", &err), DP_OK);
    assert_int_equal(dp_cluster_set(&c, "training.optimizer.kind", "ftrl", "--optimizer", &err), DP_OK);
    assert_int_equal(dp_cluster_set(&c, "training.optimizer.l1", "0.25", "--l1", &err), DP_OK);
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
    (void)state;
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

/* No byte of a good file may be changed into a crash: each is replaced in turn by a few others, or the end.
 */
static void damaged_files_never_crash(void **state)
{
    (void)state;
    static const char good[] = OPT("kind = \"adam\"; l2 = 0.5; /* c */");
    static const char with[] = "\0{}()[];=\"\\9x@-.\n";
    char text[sizeof good];
    for (size_t at = 0; at + 1 < sizeof good; at++) {
        for (size_t w = 0; w + 1 < sizeof with; w++) {
            struct dp_cluster *c = NULL;
            struct dp_error err = {0};
            memcpy(text, good, sizeof good);
            text[at] = with[w];
            if (read_text(text, &c, &err) != DP_OK)
                assert_non_null(strstr(err.text, file_path));
            dp_cluster_free(&c);
        }
    }
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(file_path, sizeof file_path, "%s/cluster.conf", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)unlink(file_path);
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(least_file_has_the_defaults),
        cmocka_unit_test(values_come_as_written),
        cmocka_unit_test(wrong_files_are_refused_by_line_and_key),
        cmocka_unit_test(facts_about_several_keys_are_checked),
        cmocka_unit_test(what_is_no_text_file_is_refused),
        cmocka_unit_test(written_reads_back_equal),
        cmocka_unit_test(categories_may_be_an_array),
        cmocka_unit_test(struct_without_an_id_gets_that_of_its_name),
        cmocka_unit_test(paths_below_the_file_move_with_it),
        cmocka_unit_test(example_file_is_read_and_has_every_key),
        cmocka_unit_test(keys_are_set_from_text_with_the_checks_of_the_file),
        cmocka_unit_test(endpoints_follow_the_order_of_the_file),
        cmocka_unit_test(damaged_files_never_crash),
    };
    return cmocka_run_group_tests_name("cluster", tests, setup, teardown);
}
