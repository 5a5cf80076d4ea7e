#include "deploy/bench/bench_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int by_ns(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void sorted(const struct dp_bench_figure *figure, double *out)
{
    memcpy(out, figure->value, figure->n * sizeof *out);
    qsort(out, figure->n, sizeof *out, by_value);
}

double dp_bench_median(const struct dp_bench_figure *figure)
{
    double v[DP_BENCH_REPEATS_MAX];
    uint32_t n = figure->n;
    if (n == 0)
        return 0;
    sorted(figure, v);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

double dp_bench_spread(const struct dp_bench_figure *figure)
{
    double v[DP_BENCH_REPEATS_MAX], median = dp_bench_median(figure);
    if (figure->n == 0 || !(median > 0))
        return 0;
    sorted(figure, v);
    return (v[figure->n - 1] - v[0]) / median;
}

double dp_bench_quantile(uint64_t *ns, size_t n, double at)
{
    if (n == 0)
        return 0;
    qsort(ns, n, sizeof *ns, by_ns);
    size_t i = (size_t)(at * (double)n);
    return (double)ns[i < n ? i : n - 1];
}

void dp_bench_head(bool store)
{
    printf(
        "M rows/s: median of the repeats, and their spread ((largest - smallest) / median); ratio: median of "
        "the "
        "repeats' own. /disk: to the same\n"
        "bytes appended and synced bare; /none: to durability none; miss: rows that the store was asked "
        "for%s\n"
        "%5s %-5s %-8s %-5s %-8s %-4s %6s %10s %8s %7s %8s %7s %7s %7s %8s %7s %7s %6s%s\n",
        store ? "; store:\nthese rows by bare MultiGet; /store: missed rows/s to that" : "", "dim", "what",
        "keys", "type", "durable", "wire", "cache", "rows", "downpour", "spread", "raw", "spread", "ratio",
        "memcpy", "disk", "/disk", "/none", "miss", store ? "  store /store" : "");
}

static void show_cpu(const struct dp_bench_line *l, bool json)
{
    printf(json ? ",\"cpu_ns_a_row\":{" : "            ns of processor time a row:");
    for (int i = 0; i < DP_BENCH_CPU_PARTS; i++)
        printf(json ? "%s\"%s\":%.2f" : "%s %s %.1f", i == 0 ? "" : ",", dp_bench_cpu_names[i],
               l->cpu_rows ? (double)l->cpu.ns[i] / (double)l->cpu_rows : 0.0);
    printf(json ? "}" : "\n");
}

static void show_line_json(const struct dp_bench_line *l, double rate, double raw, double misses)
{
    printf("{\"measure\":\"%s\",\"dim\":%" PRIu32
           ",\"keys\":\"%s\",\"type\":\"%s\",\"durability\":\"%s\",\"transport\":\"%s\","
           "\"cache_percent\":%" PRIu32 ",\"rows\":%" PRIu64 ",\"keys_a_request\":%.0f,\"in_flight\":%" PRIu32
           ",\"repeats\":%" PRIu32
           ",\"rows_per_s\":%.0f,\"spread\":%.3f,\"raw_rows_per_s\":%.0f,\"raw_spread\":%.3f,"
           "\"ratio\":%.4f,\"ratio_spread\":%.3f,\"memcpy_rows_per_s\":%.0f,\"disk_rows_per_s\":%.0f,"
           "\"disk_ratio\":%.4f,\"none_ratio\":%.4f,\"miss_share\":%.4f,"
           "\"multiget_rows_per_s\":%.0f,\"multiget_ratio\":%.4f",
           l->what, l->dim, l->draw, l->type, l->durability, l->transport, l->cache, l->rows, l->keys,
           l->in_flight, l->rate.n, rate, dp_bench_spread(&l->rate), raw, dp_bench_spread(&l->raw),
           dp_bench_median(&l->ratio), dp_bench_spread(&l->ratio), dp_bench_median(&l->memcpy_rate),
           dp_bench_median(&l->disk), dp_bench_median(&l->disk_ratio), dp_bench_median(&l->none_ratio),
           misses, dp_bench_median(&l->store), dp_bench_median(&l->store_ratio));
    show_cpu(l, true);
    printf("}\n");
}

/* A figure where it was measured, else a dash. */
static void show_figure(const struct dp_bench_figure *figure, int width, int digits, double scale)
{
    if (figure->n > 0)
        printf(" %*.*f", width, digits, dp_bench_median(figure) * scale);
    else
        printf(" %*s", width, "-");
}

void dp_bench_show_line(const struct dp_bench_line *l, bool json, bool cpu)
{
    double rate = dp_bench_median(&l->rate), raw = dp_bench_median(&l->raw);
    double misses = l->cpu_rows ? (double)l->misses / (double)l->cpu_rows : 0;
    if (json) {
        show_line_json(l, rate, raw, misses);
    } else {
        printf("%5" PRIu32 " %-5s %-8s %-5s %-8s %-4s %5" PRIu32 "%% %10" PRIu64
               " %8.2f %6.0f%% %8.2f %6.0f%% %7.3f %7.0f",
               l->dim, l->what, l->draw, l->type, l->durability, l->transport, l->cache, l->rows, rate / 1e6,
               dp_bench_spread(&l->rate) * 100, raw / 1e6, dp_bench_spread(&l->raw) * 100,
               dp_bench_median(&l->ratio), dp_bench_median(&l->memcpy_rate) / 1e6);
        show_figure(&l->disk, 8, 2, 1e-6);
        show_figure(&l->disk_ratio, 7, 2, 1);
        show_figure(&l->none_ratio, 7, 2, 1);
        printf(" %5.1f%%", misses * 100);
        if (l->store.n > 0)
            printf(" %6.2f %6.2f", dp_bench_median(&l->store) / 1e6, dp_bench_median(&l->store_ratio));
        printf("\n");
        if (cpu)
            show_cpu(l, false);
    }
    (void)fflush(stdout);
}

void dp_bench_show_recovery(const struct dp_bench_recovery *r, bool json)
{
    double millions = (double)r->rows / 1e6, updates = (double)r->replayed_rows / 1e6;
    if (json)
        printf("{\"measure\":\"recovery\",\"what\":\"%s\",\"durability\":\"%s\",\"dim\":%" PRIu32
               ",\"rows\":%" PRIu64 ",\"replayed_rows\":%" PRIu64 ",\"replayed_bytes\":%" PRIu64
               ",\"seconds\":%.3f}\n",
               r->what, r->durability, r->dim, r->rows, r->replayed_rows, r->replayed_bytes, r->seconds);
    else
        printf("%5" PRIu32
               " killed (%s, %s): %.2f s until it serves, with %.2f M rows, %.2f M row updates (%.0f MB) "
               "replayed; %.3f s a million rows, %.3f s a million updates\n",
               r->dim, r->what, r->durability, r->seconds, millions, updates, (double)r->replayed_bytes / 1e6,
               r->seconds / millions, updates > 0 ? r->seconds / updates : 0.0);
    (void)fflush(stdout);
}

void dp_bench_show_delay(const struct dp_bench_delay *d, bool json)
{
    if (json)
        printf("{\"measure\":\"latency\",\"what\":\"%s\",\"durability\":\"%s\",\"transport\":\"%s\",\"dim\":"
               "%" PRIu32 ",\"keys_a_request\":%" PRIu32 ",\"samples\":%" PRIu32
               ",\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,\"raw_p50_us\":%.1f,"
               "\"raw_p99_us\":%.1f,\"raw_p999_us\":%.1f}\n",
               d->what, d->durability, d->transport, d->dim, d->keys, d->samples, d->p50, d->p99, d->p999,
               d->raw_p50, d->raw_p99, d->raw_p999);
    else
        printf("%5" PRIu32 " %-5s %s %s round trip of %" PRIu32
               " rows, us: p50 %.0f  p99 %.0f  p99.9 %.0f   (raw %.0f  "
               "%.0f  %.0f)\n",
               d->dim, d->what, d->durability, d->transport, d->keys, d->p50, d->p99, d->p999, d->raw_p50,
               d->raw_p99, d->raw_p999);
    (void)fflush(stdout);
}

void dp_bench_show_memory(uint32_t dim, uint64_t rows, uint64_t bytes, uint64_t record, double fill_s,
                          bool json)
{
    double each = (double)bytes / (double)rows;
    if (json)
        printf("{\"measure\":\"memory\",\"dim\":%" PRIu32 ",\"rows\":%" PRIu64
               ",\"bytes_a_row\":%.1f,\"record_bytes\":%" PRIu64 ",\"fill_s\":%.2f}\n",
               dim, rows, each, record, fill_s);
    else
        printf("%5" PRIu32 " %" PRIu64 " rows filled in %.1f s; memory %.0f bytes a row; %" PRIu64
               " are the row\n",
               dim, rows, fill_s, each, record);
    (void)fflush(stdout);
}
