#include "tests/system/place.h"
#include "common/env/directory.h"

#include "tests/lib/test.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <jansson.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#define WORDS_MAX 64
/* Below the ports that the kernel gives to clients: nothing else takes them between our look and a server's
 * bind. */
#define PORTS_FROM 10000u
#define PORTS_TO   32000u

struct dp_place {
    char dir[256];
    uint32_t processes, texts, started;
    struct dp_process **process;
    char **text;
};

int dp_place_setup(void **state)
{
    struct dp_place *place = calloc(1, sizeof *place);
    const char *tmp = getenv("TMPDIR");
    if (!place)
        return -1;
    (void)snprintf(place->dir, sizeof place->dir, "%s/dp_system_XXXXXX", tmp ? tmp : "/tmp");
    *state = place;
    return mkdtemp(place->dir) ? 0 : -1;
}

int dp_place_teardown(void **state)
{
    struct dp_place *place = *state;
    for (uint32_t i = 0; i < place->processes; i++)
        dp_process_free(&place->process[i]);
    for (uint32_t i = 0; i < place->texts; i++)
        free(place->text[i]);
    free(place->process);
    free(place->text);
    int failed = (int)dp_directory_remove(place->dir, true, 0, NULL);
    free(place);
    return failed;
}

static const char *keep(struct dp_place *place, char *text)
{
    assert_non_null(text);
    place->text = realloc(place->text, (place->texts + 1) * sizeof *place->text);
    assert_non_null(place->text);
    place->text[place->texts++] = text;
    return text;
}

static DP_PRINTF(1, 0) char *format_text(const char *format, va_list args)
{
    char *text = NULL;
    FILE *stream;
    size_t size;
    stream = open_memstream(&text, &size);
    assert_non_null(stream);
    (void)vfprintf(stream, format, args);
    assert_int_equal(fclose(stream), 0);
    return text;
}

const char *dp_place_text(struct dp_place *place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = keep(place, format_text(format, args));
    va_end(args);
    return text;
}

const char *dp_place_path(struct dp_place *place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *name = keep(place, format_text(format, args));
    va_end(args);
    return dp_place_text(place, "%s/%s", place->dir, name);
}

const char *dp_place_file(struct dp_place *place, const char *name, const void *bytes, size_t size)
{
    const char *path = dp_place_path(place, "%s", name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return path;
}

char *dp_place_read(struct dp_place *place, const char *path, size_t *size)
{
    size_t len = 0, room = 1 << 16;
    char *text = malloc(room);
    gzFile file = gzopen(path, "re"); /* plain files too */
    assert_non_null(text);
    if (!file)
        fail_msg("'%s' cannot be read", path);
    for (int got = 1; got > 0; len += (size_t)got) {
        if (room - len < 32768) {
            room *= 2;
            text = realloc(text, room);
            assert_non_null(text);
        }
        got = gzread(file, text + len, 32767);
        assert_true(got >= 0);
    }
    assert_int_equal(gzclose(file), Z_OK);
    text[len] = '\0';
    if (size)
        *size = len;
    (void)keep(place, text);
    return text;
}

struct dp_process *dp_place_start(struct dp_place *place, const char *program, ...)
{
    const char *argv[WORDS_MAX + 1] = {program};
    int n = 1;
    va_list args;
    va_start(args, program);
    for (const char *word; n < WORDS_MAX && (word = va_arg(args, const char *)) != NULL;)
        argv[n++] = word;
    va_end(args);
    assert_true(n < WORDS_MAX);
    if (strncmp(program, "downpour", 8) == 0)
        argv[0] = dp_place_text(place, "%s/%s", DP_BIN, program);
    const struct dp_process_options options = {
        .argv = argv,
        .prefix = dp_place_path(place, "process-%u", (unsigned)place->started++),
        .cwd = place->dir};
    place->process = realloc(place->process, (place->processes + 1) * sizeof(struct dp_process *));
    assert_non_null(place->process);
    return place->process[place->processes++] = dp_process_start(&options);
}

void dp_place_drop(struct dp_place *place, struct dp_process **process)
{
    uint32_t i = 0;
    while (place->process[i] != *process)
        i++;
    place->process[i] = place->process[--place->processes];
    dp_process_free(process);
}

static void show(struct dp_process *process)
{
    /* cmocka's own printing ends after 1,024 bytes. */
    fprintf(stderr, "standard output:\n%s\nstandard error:\n%s\n", dp_process_out(process),
            dp_process_err(process));
}

void dp_place_ended(struct dp_process *process, int code)
{
    int got = dp_process_end(process, 2 * DP_SOON_MS);
    if (got != code) {
        show(process);
        fail_msg("it ended with %d%s, not %d", got, got == DP_PROCESS_RUNS ? " (it still runs)" : "", code);
    }
    uint32_t left = dp_process_left(process);
    if (left > 0) {
        show(process);
        fail_msg("%u of its processes still run", (unsigned)left);
    }
}

struct dp_process *dp_place_ended_in(struct dp_place *place, int code, struct dp_process *process)
{
    dp_place_ended(process, code);
    return process;
}

void dp_place_says(struct dp_process *process, const char *text)
{
    if (strstr(dp_process_err(process), text) || strstr(dp_process_out(process), text))
        return;
    show(process);
    fail_msg("it did not say '%s'", text);
}

void dp_place_awaits(struct dp_process *process, const char *text)
{
    if (dp_process_await(process, text, DP_SOON_MS))
        return;
    show(process);
    fail_msg("it has not said '%s'", text);
}

static bool port_is_free(uint32_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    bool good = bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0;
    (void)close(fd);
    return good;
}

uint32_t dp_place_ports(uint32_t count)
{
    /* Each test program and each call begins to look elsewhere. */
    static uint64_t random;
    if (!random)
        random = (uint64_t)getpid() << 20 ^ dp_process_now_ms();
    for (int i = 0; i < 1000; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint32_t first = PORTS_FROM + (uint32_t)(random >> 33) % (PORTS_TO - PORTS_FROM - count), n = 0;
        while (n < count && port_is_free(first + n))
            n++;
        if (n == count)
            return first;
    }
    fail_msg("no %u free ports in a row", (unsigned)count);
    return 0;
}

static void fill_in(struct dp_place_cluster *c)
{
#define DP_OTHERWISE(field, value) c->field = c->field ? c->field : (value)
    DP_OTHERWISE(file, "c");
    DP_OTHERWISE(model, "mlp:64-64-10");
    DP_OTHERWISE(train, DP_DIGITS_TRAIN);
    DP_OTHERWISE(test, DP_DIGITS_TEST);
    DP_OTHERWISE(servers, 1);
    DP_OTHERWISE(shards, 1);
    DP_OTHERWISE(workers, 1);
    DP_OTHERWISE(epochs, 2);
    DP_OTHERWISE(batch, 16);
    DP_OTHERWISE(run, 1);
    DP_OTHERWISE(timeout_ms, 30000);
    DP_OTHERWISE(port, dp_place_ports(c->servers * (1 + c->shards)));
    DP_OTHERWISE(rate, "0.005");
    DP_OTHERWISE(training, "");
    DP_OTHERWISE(data, "scale = 0.0625;");
    DP_OTHERWISE(top, "");
#undef DP_OTHERWISE
}

const char *dp_place_conf(struct dp_place *place, struct dp_place_cluster *c)
{
    fill_in(c);
    const char *path = dp_place_path(place, "%s.conf", c->file);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "name = \"%s\";\nmodel = \"%s\";\n%s\nservers = (\n", c->file, c->model, c->top);
    for (uint32_t i = 0; i < c->servers; i++)
        fprintf(file,
                "  { host = \"127.0.0.1\"; port = %" PRIu32 "; shards = %" PRIu32 "; store = \"%s/%s-%" PRIu32
                "\"; }%s\n",
                c->port + i * (1 + c->shards), c->shards, place->dir, c->file, i,
                i + 1 < c->servers ? "," : "");
    fprintf(file, ");\ndata = { train = \"%s\"; test = \"%s\"; %s };\n", c->train, c->test, c->data);
    fprintf(file,
            "training = {\n  workers = %" PRIu32 "; epochs = %" PRIu32 "; batch = %" PRIu32
            "; rate = %s; run = %" PRIu32 ";\n  timeout_ms = %" PRIu32 "; report = \"%s/%s.json\"; %s\n};\n",
            c->workers, c->epochs, c->batch, c->rate, c->run, c->timeout_ms, place->dir, c->file,
            c->training);
    assert_int_equal(fclose(file), 0);
    return path;
}

struct dp_process *dp_place_server(struct dp_place *place, const char *conf, uint32_t server)
{
    struct dp_process *process = dp_place_start(place, "downpour-server", "--cluster", conf, "--server",
                                                dp_place_text(place, "%" PRIu32, server), "--new", NULL);
    dp_place_awaits(process, "ready:");
    return process;
}

struct dp_process *dp_place_worker(struct dp_place *place, const char *conf, uint32_t worker)
{
    return dp_place_start(place, "downpour-worker", "--cluster", conf, "--worker",
                          dp_place_text(place, "%" PRIu32, worker), NULL);
}

void dp_place_stops_cleanly(struct dp_process *server)
{
    dp_process_signal(server, SIGTERM);
    dp_place_ended(server, 0);
    dp_place_says(server, "closed cleanly");
}

double dp_place_number(struct dp_place *place, const char *json, const char *where)
{
    json_error_t why;
    json_t *root = json_load_file(json, 0, &why);
    const json_t *at = root;
    char part[64];
    if (!root)
        fail_msg("'%s': %s", json, why.text);
    for (const char *p = where; at && *p;) {
        size_t len = strcspn(p, ".");
        (void)snprintf(part, sizeof part, "%.*s", (int)len, p);
        at = json_is_array(at) ? json_array_get(at, (size_t)strtoul(part, NULL, 10))
                               : json_object_get(at, part);
        p += p[len] ? len + 1 : len;
    }
    if (!json_is_number(at)) {
        json_decref(root);
        fail_msg("'%s' has no number '%s'", json, where);
    }
    double value = json_number_value(at);
    json_decref(root);
    return value;
}

const char *dp_place_digest(struct dp_place *place, const char *store, const char *other)
{
    struct dp_process *inspect =
        dp_place_try(place, 0, "downpour", "inspect", "--verify", "--digest", store, other);
    const char *digest = strstr(dp_process_out(inspect), "\ndigest ");
    if (!digest) {
        show(inspect);
        fail_msg("no digest");
    }
    return dp_place_text(place, "%s", digest);
}

double dp_place_counter(struct dp_place *place, const char *conf, const char *counter)
{
    struct dp_process *status = dp_place_try(place, 0, "downpour", "status", "--all", "--cluster", conf);
    size_t len = strlen(counter);
    double sum = 0;
    bool found = false;
    /* "  NAME      1,234  total  HELP": commas go. */
    for (const char *line = dp_process_out(status); line; line = strchr(line, '\n')) {
        line += strspn(line, "\n ");
        if (strncmp(line, counter, len) != 0 || line[len] != ' ')
            continue;
        double value = 0;
        for (const char *p = line + len + strspn(line + len, " "); *p == ',' || (*p >= '0' && *p <= '9'); p++)
            if (*p != ',')
                value = 10 * value + (*p - '0');
        sum += value;
        found = true;
    }
    if (!found) {
        show(status);
        fail_msg("no counter '%s'", counter);
    }
    return sum;
}

void dp_place_awaits_file(struct dp_place *place, const char *path, const char *text)
{
    uint64_t until = dp_process_now_ms() + (uint64_t)DP_SOON_MS * DP_PATIENCE;
    while (access(path, R_OK) != 0 || !strstr(dp_place_read(place, path, NULL), text)) {
        if (dp_process_now_ms() > until)
            fail_msg("%s has no '%s'", path, text);
        dp_process_pause();
    }
}

pid_t dp_place_child(const struct dp_process *run, const char *text)
{
    pid_t pid = dp_process_find(run, text);
    if (pid <= 0)
        fail_msg("there is no process with '%s'", text);
    return pid;
}

void dp_place_kill_child(const struct dp_process *run, const char *text)
{
    assert_int_equal(kill(dp_place_child(run, text), SIGKILL), 0);
}

const char *dp_place_run_digest(struct dp_place *place, const char *dir)
{
    const char *second = dp_place_text(place, "%s/store/server-1", dir);
    return dp_place_digest(place, dp_place_text(place, "%s/store/server-0", dir),
                           access(second, F_OK) == 0 ? second : NULL);
}
