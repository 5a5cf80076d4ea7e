/* Cluster files that are wrong: each is refused, by line and key. */
#include "tests/unit/config/cluster_text.h"

static const struct bad wrong_files[] = {
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
    {TOP DATA "servers = { };", ":4: ", "missing key 'servers.count'"},
    {TOP DATA "servers = { host = \"a\"; port = 1; store = \"s\"; };", ":4: ", "'servers' must be a list"},
    {TOP DATA "servers = (\n3);", ":5: ", "must be a group"},
    {GOOD "cache_bytes = 1.5;", ":5: ", "'cache_bytes' must be an integer or a string"},
    {TRAIN("seed = \"many\";"), ":6: ", "'training.seed'"},
    {GOOD "metrics = 9600;", ":5: ", "'metrics' must be a string, not an integer"},
    {GOOD "metrics = \"node1:9600\";", ".conf", "'metrics' is \"node1:9600\", but must be ADDRESS:PORT"},
    {GOOD "metrics = \"127.0.0.1\";", ".conf", "but must be ADDRESS:PORT"},
    {GOOD "metrics = \"127.0.0.1:\";", ".conf", "but must be ADDRESS:PORT"},
    {GOOD "metrics = \":65536\";", ".conf", "but must be ADDRESS:PORT"},
    {GOOD "metrics = \"::1:9600\";", ".conf", "but must be ADDRESS:PORT"},
    {GOOD "metrics = \"[::1]9600\";", ".conf", "but must be ADDRESS:PORT"},
    {GOOD "metrics = \"[127.0.0.1]:9600\";", ".conf", "but must be ADDRESS:PORT"},
    {TRAIN("accumulate = 2; push_every = 2;"), ".conf", "'training.accumulate' is 2, which is both"},
    {TRAIN("accumulate = 0;"), ":6: ", "'training.accumulate'"},
    /* threads */
    {TRAIN("threads = 0;"), ":6: ", "'training.threads' is 0, but must be 1 .. 256"},
    {TRAIN("threads = 2; consistency = \"sync\";"), ".conf",
     "'training.consistency' is sync, which computes a step on unchanged weights: leave one out "
     "('training.blas_threads': threads of"},
    {TRAIN("threads = 2; device = \"auto\";"), ".conf",
     "'training.threads' is 2, threads that compute on the CPU, but 'training.device' is auto"},
    {TRAIN("threads = 2; accumulate = 4;"), ".conf",
     "but 'training.accumulate' is 4, minibatches on unchanged weights"},
    {TRAIN("threads = 2; blas_threads = 3;"), ".conf",
     "'training.threads' is 2, and 'training.blas_threads' is 3: give the first for sparse models"},
    {TRAIN("threads = 2; fetch_every = 8; push_every = 4;"), ".conf",
     "but 'training.fetch_every' is 8 and 'training.push_every' is 4: give one of them"},
    {TRAIN("threads = 4; push_every = 3;"), ".conf",
     "'training.threads' is 4, but only 3 minibatches are fetched together: raise 'training.fetch_every'"},
    /* consistency */
    {TRAIN("work = \"lent\";"), ".conf", "'training.work'"},
    {TRAIN("work = \"leased\"; consistency = \"ssp:3\";"), ".conf",
     "'training.work' is leased and 'training.consistency' is ssp:3: leased workers train different numbers "
     "of minibatches"},
    {TRAIN("work = \"leased\"; consistency = \"sync:1\"; workers = 3;"), ".conf",
     "is sync:1: leased workers"},
    {TRAIN("consistency = \"bsp\";"), ".conf", "'training.consistency' is \"bsp\", but must be async, ssp:S"},
    {TRAIN("consistency = \"\";"), ".conf", "'training.consistency' is \"\", but must be async, ssp:S"},
    {TRAIN("consistency = \"synch\";"), ".conf", "did you mean 'sync'?"},
    {TRAIN("consistency = \"asnyc\";"), ".conf", "did you mean 'async'?"},
    {TRAIN("consistency = \"sync:0\";"), ".conf", "did you mean 'sync'?"},
    {TRAIN("consistency = \"SYNC\";"), ".conf", "did you mean 'sync'?"},
    {TRAIN("consistency = \"ssp:-1\";"), ".conf", "1 .. 1023)"},
    {TRAIN("consistency = \"ssp\";"), ".conf", "did you mean 'ssp:3'?"},
    {TRAIN("consistency = \"ssp:\";"), ".conf", "but must be async, ssp:S"},
    {TRAIN("consistency = \"ssp:-1\";"), ".conf", "but must be async, ssp:S"},
    {TRAIN("consistency = \"ssp:1000001\";"), ".conf", "0 .. 1000000), sync or sync:B"},
    {TRAIN("consistency = \"sync:\"; workers = 4;"), ".conf", "but must be async, ssp:S"},
    {TRAIN("consistency = \"sync:0\"; workers = 4;"), ".conf",
     "sync:B (B: workers that a step does not wait for, 1 .. 1023)"},
    {TRAIN("consistency = \"sync:1024\"; workers = 1024;"), ".conf", "but must be async, ssp:S"},
    {TRAIN("consistency = \"sync:2\"; workers = 2;"), ".conf",
     "'training.consistency' is sync:2, whose steps do not wait for the slowest 2, but 'training.workers' is "
     "2: give more"},
    {TRAIN("consistency = \"sync:1\"; workers = 2; fetch_every = 2; push_every = 2;"), ".conf",
     "'training.consistency' is sync:1, which pulls the weights of each step, but 'training.fetch_every' is "
     "2"},
    {TRAIN("consistency = \"sync\"; fetch_every = 2; push_every = 2;"), ".conf",
     "'training.consistency' is sync, which pulls the weights of each step, but 'training.fetch_every' is 2"},
    {TRAIN("consistency = \"ssp:2\"; fetch_every = 4;"), ".conf",
     "'training.fetch_every' is 4, which pulls the weights of up to 4 steps at once, but "
     "'training.consistency' is ssp:2: give it 3 steps or more"},
    {TRAIN("consistency = \"ssp:0\"; fetch_every = 2; push_every = 3;"), ".conf", "up to 2 steps at once"},
    {TRAIN("worker_timeout = 5;"), ".conf",
     "'training.worker_timeout' is 5 s, but 'training.consistency' is async, where no worker waits for "
     "another"},
    {TRAIN("consistency = \"sync\"; workers = 1025;"), ".conf",
     "'training.consistency' is sync, which takes 1024 workers at most, but 'training.workers' is 1025"},
    {"durability = \"none\";\n" TRAIN("consistency = \"sync\";"), ".conf",
     "'training.consistency' is sync, which keeps pushes in a journal until a step is complete, but "
     "'durability' is none"},
    {TRAIN("consistency = \"sync\"; rate_by_staleness = true;"), ".conf",
     "'training.consistency' is sync, which applies a step at one rate and has no stale pushes, but "
     "'training.rate_by_staleness' is true"},
    /* checkpoints by the first server */
    {GOOD "checkpoint = { to = \"d\"; };\n", ":5: ", "missing key 'checkpoint.every'"},
    {GOOD "checkpoint = { every = 9; };\n", ":5: ", "missing key 'checkpoint.to'"},
    {GOOD "checkpoint = { to = \"d\"; every = 0; };\n", ":5: ", "'checkpoint.every' is 0"},
    {"durability = \"none\";\n" GOOD "checkpoint = { to = \"d\"; every = 9; };\n", ".conf",
     "'durability' is \"none\", and checkpoints are made of the journal"},
    /* injected delays */
    {TRAIN("pace = \"20\";"), ".conf",
     "'training.pace': '20' is not a time with a unit, such as 20ms, 1.5s or 250us, of 60 s at most"},
    {TRAIN("pace = \"-20ms\";"), ".conf", "'training.pace': '-20ms' is not a time"},
    {TRAIN("pace = \"61s\";"), ".conf", "of 60 s at most"},
    {TRAIN("jitter = \"gauss\";"), ":6: ", "but must be none, exp or uniform"},
    {TRAIN("jitter = \"exp\";"), ".conf",
     "'training.jitter' is exp, which multiplies the time of a minibatch, but 'training.pace' gives no time: "
     "give one (20ms)"},
    {TRAIN("jitter = \"exp\"; pace = \"0\";"), ".conf", "but 'training.pace' gives no time"},
    {TRAIN("straggler = \"2:10x\"; workers = 2;"), ".conf",
     "'training.straggler' has \"2:10x\", but the workers are 0 .. 1: name one of them, or raise "
     "'training.workers'"},
    {TRAIN("straggler = \"1:0x\"; workers = 2;"), ".conf",
     "'training.straggler' has \"1:0x\", but must be WORKER:FACTORx, a factor of 1 .. 1000"},
    {TRAIN("straggler = \"1:0.5x\"; workers = 2;"), ".conf", "a factor of 1 .. 1000"},
    {TRAIN("straggler = \"1:-2x\"; workers = 2;"), ".conf", "a factor of 1 .. 1000"},
    {TRAIN("straggler = \"1:1001x\"; workers = 2;"), ".conf", "a factor of 1 .. 1000"},
    {TRAIN("straggler = \"1:x\"; workers = 2;"), ".conf", "a factor of 1 .. 1000"},
    {TRAIN("straggler = \"1:601s\"; workers = 2;"), ".conf", "or WORKER:TIME, up to 600s"},
    {TRAIN("straggler = \"1:50\"; workers = 2;"), ".conf", "or WORKER:TIME"},
    {TRAIN("straggler = \"-1:2x\"; workers = 2;"), ".conf", "must be WORKER:FACTORx"},
    {TRAIN("straggler = \"10x\"; workers = 2;"), ".conf", "must be WORKER:FACTORx"},
    {TRAIN("straggler = \"0:2x,,1:3x\"; workers = 2;"), ".conf", "has \"\", but must be WORKER:FACTORx"},
    {TRAIN("straggler = [\"0:2x\", \"1:3x\", \"0:1ms\"]; workers = 2;"), ".conf",
     "'training.straggler' names worker 0 twice: leave one out"},
    {TRAIN("straggler = \"1:11x\"; workers = 2; pace = \"60s\";"), ".conf",
     "and 'training.pace' is 60s: a minibatch of worker 1 would take 660 s, over 600: lower one of them"},
    /* devices */
    {TRAIN("device = \"gpu\";"), ".conf", "'training.device' is \"gpu\", but must be cpu, cuda, cuda:N"},
    {TRAIN("device = \"cuda:\";"), ".conf", "'training.device'"},
    {TRAIN("device = \"cuda:0x\";"), ".conf", "'training.device'"},
    {TRAIN("device = \"cuda:each1\";"), ".conf", "cuda:each (a GPU for each worker) or auto"},
    {TRAIN("device = \"cuda:12345\";"), ".conf", "'training.device'"},
    {TRAIN("device = \"cuda:0\"; precision = \"f16\";"), ":6: ", "but must be f32, tf32 or bf16"},
    {TRAIN("precision = \"bf16\";"), ".conf", "'training.precision' is bf16, but the CPU computes in f32"},
    /* early ends */
    {TRAIN("stop_at = \"auc\";"), ".conf", "'training.stop_at' is 'auc', but must be METRIC:VALUE"},
    {TRAIN("stop_at = \":1\";"), ".conf", "must be METRIC:VALUE"},
    {TRAIN("stop_at = \"acuracy:0.5\";"), ".conf", "no metric 'acuracy' (did you mean 'accuracy'?)"},
    {TRAIN("stop_at = \"auc:1.5\";"), ".conf", "auc is never above 1"},
    {TRAIN("stop_at = \"hr@10:0\";"), ".conf", "never below 0"},
    {TRAIN("stop_at = \"recall@10:0.1\";"), ".conf",
     "'training.stop_at' looks at the first 10 items, but 'training.top_k' is 20: give it 10"},
    {TRAIN("patience = 2; patience_metric = \"ndcg@5\";"), ".conf", "'training.patience_metric' looks at"},
    {TRAIN("stop_at = \"recall@x:0.1\";"), ".conf", "no metric 'recall@x'"},
    {TRAIN("stop_at = \"logloss:-1\";"), ".conf", "logloss is never 0 or below"},
    {TRAIN("stop_at = \"logloss:nan\";"), ".conf", "'training.stop_at'"},
    {TRAIN("stop_at = \"logloss:0.4\";"), ".conf", "there is nothing to evaluate"},
    {TRAIN("patience = 3;"), ".conf", "'training.patience' needs a metric"},
    {TRAIN("patience_metric = \"auc\";"), ".conf", "gives no number of epochs"},
    {TRAIN("patience = 1; patience_metric = \"zzz\";"), ".conf", "no metric 'zzz'; the metrics are"},
    {TOP SERVERS "data = { train = \"a\"; validation = \"b\"; validation_share = 0.1; };", ".conf",
     "give one of them"},
    /* of a file that is not named */
    {TOP SERVERS "data = { train = \"a\"; test_labels = \"b\"; };", ".conf",
     "'data.test_labels' names a file, but 'data.test', which it belongs to, names none"},
    {TOP SERVERS "data = { train = \"a\"; columns = \"a\"; };", ".conf",
     "'data.columns' is \"a\", a file of the data"},
    {TOP SERVERS "data = { train = \"a\"; test = \"b\"; names = \"b\"; };", ".conf",
     "'data.names' is \"b\", a file of the data"},
    {TOP SERVERS "data = { train = \"a\"; test_negatives = \"b\"; };", ".conf", "'data.test_negatives'"},
    {TOP SERVERS "data = { train = \"a\"; test = \"b\"; validation_labels = \"b\"; };", ".conf",
     "'data.validation_labels' names a file, but 'data.validation'"},
    {TOP SERVERS "data = { train = \"a\"; validation_share = 0.1; validation_negatives = \"b\"; };", ".conf",
     "'data.validation_negatives'"},
    {TRAIN("rate_end = 0.1;"), ".conf", "'training.rate_end' is 0.1, but decay \"none\" does not end"},
    {TRAIN("decay = \"cosine\"; optimizer = { kind = \"ftrl\"; };"), ".conf",
     "'training.decay' is \"cosine\", and ends at 0"},
    {TRAIN("rate_end = 0.1; decay = \"inverse-sqrt\";"), ".conf", "decay \"inverse-sqrt\""},
    {TOP SERVERS "data = { train = \"a\"; validation_share = 0.95; };", ":4: ", "'data.validation_share'"},
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

static void wrong_files_are_refused_by_line_and_key(void **state)
{
    for (size_t i = 0; i < sizeof wrong_files / sizeof wrong_files[0]; i++) {
        struct dp_cluster *c = NULL;
        struct dp_error err = {0};
        enum dp_status st = read_text(wrong_files[i].text, &c, &err);
        if (st != DP_ARGUMENT || c || !strstr(err.text, file_path) ||
            !strstr(err.text, wrong_files[i].line) || !strstr(err.text, wrong_files[i].key))
            fail_msg("case %zu: status %d, '%s' lacks '%s' or '%s'", i, st, err.text, wrong_files[i].line,
                     wrong_files[i].key);
        assert_int_equal(read_text(wrong_files[i].text, &c, NULL), DP_ARGUMENT);
    }
}

static void facts_about_several_keys_are_checked(void **state)
{
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

/* No byte of a good file may be changed into a crash: each is replaced in turn by a few others, or the end.
 */
static void damaged_files_never_crash(void **state)
{
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_files_are_refused_by_line_and_key),
        cmocka_unit_test(facts_about_several_keys_are_checked),
        cmocka_unit_test(what_is_no_text_file_is_refused),
        cmocka_unit_test(damaged_files_never_crash),
    };
    return cmocka_run_group_tests_name("cluster_refused", tests, setup, teardown);
}
