#include "deploy/run/run_provenance.h"

#include "common/base/json.h"
#include "common/env/json_file.h"
#include "deploy/cli/path.h"
#include "deploy/run/build.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define ORIGIN "origin.json"

/* Of /proc/cpuinfo; arm64 has no such line. */
bool dp_run_processor(char *name, size_t size)
{
    char line[256];
    bool found = false;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        colon += 1 + strspn(colon + 1, " ");
        colon[strcspn(colon, "\n")] = '\0';
        (void)snprintf(name, size, "%s", colon);
        found = true;
    }
    if (file)
        (void)fclose(file);
    return found;
}

static json_t *machine_of(void)
{
    struct utsname system;
    char processor[256];
    json_t *machine = json_object();
    if (dp_run_processor(processor, sizeof processor))
        (void)json_object_set_new(machine, "processor", json_string(processor));
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

static json_t *build_of(void)
{
    json_t *libraries = json_object();
    char list[] = DP_BUILD_LIBRARIES; /* "libzmq 4.3.4;..." */
    for (char *save = NULL, *one = strtok_r(list, ";", &save); one; one = strtok_r(NULL, ";", &save)) {
        char *space = strchr(one, ' ');
        if (!space)
            continue;
        *space = '\0';
        (void)json_object_set_new(libraries, one, json_string(space + 1));
    }
    return json_pack("{s:s, s:s, s:s, s:o}", "commit", DP_BUILD_COMMIT, "type", DP_BUILD_TYPE, "compiler",
                     DP_BUILD_COMPILER, "libraries", libraries);
}

json_t *dp_origin_of_command(const char *word, int argc, char *const *argv)
{
    char here[DP_PATH_MAX + 1], began[32], program[DP_PATH_MAX + 1];
    ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
    time_t now = time(NULL);
    struct tm utc;
    json_t *root = json_pack("{s:s, s:o, s:o}", "version", DOWNPOUR_VERSION, "build", build_of(), "machine",
                             machine_of());
    if (size > 0 && size < (ssize_t)sizeof program - 1)
        (void)json_object_set_new(root, "program", json_stringn(program, (size_t)size));
    if (gmtime_r(&now, &utc) && strftime(began, sizeof began, "%Y-%m-%dT%H:%M:%SZ", &utc) > 0)
        (void)json_object_set_new(root, "began", json_string(began));
    json_t *words = words_of(word, argc, argv);
    if (words)
        (void)json_object_set_new(root, "command", words);
    if (getcwd(here, sizeof here))
        (void)json_object_set_new(root, "directory", json_string(here));
    return root;
}

enum dp_status dp_run_provenance_write(const struct dp_folder *folder, uint32_t run, int argc,
                                       char *const *argv, struct dp_error *err)
{
    char path[DP_PATH_MAX + 1];
    enum dp_status st = dp_folder_path(folder, path, err, ORIGIN);
    if (st != DP_OK)
        return st;
    json_t *root = json_pack("{s:I}", "run", (json_int_t)run),
           *origin = dp_origin_of_command("run", argc, argv);
    (void)json_object_update(root, origin);
    json_decref(origin);
    return dp_json_file_write(path, &root, 10, err);
}

json_t *dp_run_provenance_read(const struct dp_folder *folder, uint32_t run)
{
    char path[DP_PATH_MAX + 1];
    struct dp_error unheard = {0};
    if (dp_folder_path(folder, path, &unheard, ORIGIN) != DP_OK)
        return NULL;
    json_t *root = json_load_file(path, 0, NULL);
    if (root && json_integer_value(json_object_get(root, "run")) == (json_int_t)run)
        return root;
    json_decref(root);
    return NULL;
}

/* As a shell takes it for one word; a page shows no control characters, so they are written as bash's $'' has them. */
static void put_word(FILE *out, const char *word)
{
    char quoted[DP_PATH_QUOTED];
    bool controls = false;
    for (const char *c = word; *c; c++)
        controls |= (unsigned char)*c < ' ' || *c == 0x7f;
    if (!controls) {
        fputs(dp_path_quote(word, quoted), out);
        return;
    }
    fputs("$'", out);
    for (const char *c = word; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            fprintf(out, "\\%03o", (unsigned)(unsigned char)*c);
        else
            fprintf(out, "%s%c", *c == '\'' || *c == '\\' ? "\\" : "", *c);
    fputc('\'', out);
}

size_t dp_origin_words_of_directory(const char *word)
{
    static const char *const alone[] = {"--overwrite", "--resume", "--fresh"};
    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++)
        if (strcmp(word, alone[i]) == 0)
            return 1;
    return strcmp(word, "--dir") == 0 ? 2 : strncmp(word, "--dir=", 6) == 0;
}

static bool put_command(FILE *out, const json_t *origin, const char *dir)
{
    const json_t *words = json_object_get(origin, "command");
    const char *program = json_string_value(json_object_get(origin, "program")),
               *from = json_string_value(json_object_get(origin, "directory"));
    char again[DP_PATH_MAX + 1];
    bool good = snprintf(again, sizeof again, "%s-again", dir) <= DP_PATH_MAX && from;
    for (size_t i = 0; good && i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));
        good = word && strlen(word) <= DP_PATH_MAX;
    }
    if (!good || strlen(from) > DP_PATH_MAX)
        return false;
    fputs("cd ", out);
    put_word(out, from);
    fputs(" && ", out);
    put_word(out, program && strlen(program) <= DP_PATH_MAX ? program : "downpour");
    for (size_t i = 1, skipped; i < json_array_size(words); i += skipped ? skipped : 1) {
        const char *word = json_string_value(json_array_get(words, i));
        skipped = dp_origin_words_of_directory(word);
        if (skipped > 0)
            continue;
        fputc(' ', out);
        put_word(out, word);
    }
    fputs(" --dir ", out);
    put_word(out, again);
    return true;
}

char *dp_origin_again(const json_t *origin, const char *dir)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = json_array_size(json_object_get(origin, "command")) > 1 ? open_memstream(&text, &size) : NULL;
    bool good = out && put_command(out, origin, dir);
    if (out && fclose(out) == 0 && good)
        return text;
    free(text);
    return NULL;
}
