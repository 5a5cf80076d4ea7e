#include "deploy/cli/run_origin.h"

#include "common/base/json.h"
#include "common/env/atomic_file.h"
#include "deploy/cli/path.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static enum dp_status origin_path(const char *directory, uint32_t run, char *path, struct dp_error *err)
{
    if (snprintf(path, DP_PATH_MAX + 1, "%s/store/origin-%" PRIu32 ".json", directory, run) > DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT, "paths in '%s' would be too long", directory);
    return DP_OK;
}

/* Of /proc/cpuinfo; arm64 has no such line. */
static void set_processor(json_t *machine)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        colon += 1 + strspn(colon + 1, " ");
        colon[strcspn(colon, "\n")] = '\0';
        (void)json_object_set_new(machine, "processor", json_string(colon));
        break;
    }
    if (file)
        (void)fclose(file);
}

static json_t *machine_of(void)
{
    struct utsname system;
    json_t *machine = json_object();
    set_processor(machine);
    long cores = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (cores > 0)
        dp_json_set_u64(machine, "cores", (uint64_t)cores);
    if (pages > 0 && page > 0)
        dp_json_set_u64(machine, "memory_bytes", (uint64_t)pages * (uint64_t)page);
    if (uname(&system) == 0)
        (void)json_object_set_new(machine, "system",
                                  json_sprintf("%s %s %s", system.sysname, system.release, system.machine));
    return machine;
}

/* Words that are no UTF-8 (names of files may be none) are not kept: they would be other ones. */
static json_t *words_of(const char *word, int argc, char *const *argv)
{
    json_t *words = json_pack("[s, s]", "downpour", word);
    for (int i = 0; i < argc; i++)
        if (json_array_append_new(words, json_string(argv[i])) != 0) {
            json_decref(words);
            return NULL;
        }
    return words;
}

json_t *dp_origin_of_command(const char *word, int argc, char *const *argv)
{
    char here[DP_PATH_MAX + 1], began[32];
    time_t now = time(NULL);
    struct tm utc;
    json_t *root = json_pack("{s:s,s:o}", "version", DOWNPOUR_VERSION, "machine", machine_of());
    if (gmtime_r(&now, &utc) && strftime(began, sizeof began, "%Y-%m-%dT%H:%M:%SZ", &utc) > 0)
        (void)json_object_set_new(root, "began", json_string(began));
    json_t *words = words_of(word, argc, argv);
    if (words)
        (void)json_object_set_new(root, "command", words);
    if (getcwd(here, sizeof here))
        (void)json_object_set_new(root, "directory", json_string(here));
    return root;
}

enum dp_status dp_run_origin_write(const char *directory, uint32_t run, int argc, char *const *argv,
                                   struct dp_error *err)
{
    char path[DP_PATH_MAX + 1];
    struct dp_atomic_file file = {0};
    enum dp_status st = origin_path(directory, run, path, err);
    if (st == DP_OK)
        st = dp_atomic_file_open(path, &file, err);
    if (st != DP_OK)
        return st;
    json_t *root = json_pack("{s:I}", "run", (json_int_t)run),
           *origin = dp_origin_of_command("run", argc, argv);
    (void)json_object_update(root, origin);
    json_decref(origin);
    char *text = json_dumps(root, JSON_INDENT(2));
    json_decref(root);
    if (text)
        (void)fprintf(file.stream, "%s\n", text);
    else
        dp_atomic_file_drop(&file);
    free(text);
    return text ? dp_atomic_file_commit(&file, err) : dp_fail(err, DP_NOMEM, "no memory for '%s'", path);
}

json_t *dp_run_origin_read(const char *directory, uint32_t run)
{
    char path[DP_PATH_MAX + 1];
    struct dp_error unheard = {0};
    if (origin_path(directory, run, path, &unheard) != DP_OK)
        return NULL;
    json_t *root = json_load_file(path, 0, NULL);
    if (root && json_integer_value(json_object_get(root, "run")) == (json_int_t)run)
        return root;
    json_decref(root);
    return NULL;
}

char *dp_run_origin_command(const json_t *origin)
{
    const json_t *words = json_object_get(origin, "command");
    char *text = NULL, quoted[DP_PATH_QUOTED];
    size_t size = 0;
    FILE *out = json_array_size(words) > 0 ? open_memstream(&text, &size) : NULL;
    if (!out)
        return NULL;
    bool good = true;
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));
        good = good && word && strlen(word) <= DP_PATH_MAX;
        if (good)
            fprintf(out, "%s%s", i ? " " : "", dp_path_quote(word, quoted));
    }
    if (fclose(out) == 0 && good)
        return text;
    free(text);
    return NULL;
}
