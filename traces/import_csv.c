/* CSV formats: a format is a set of column names, as the publishers spell them. Other columns are
 * ignored. Times are seconds, perhaps since 1970, or a date and time of day. */
#include "sim/base/words.h"
#include "traces/import.h"

#define UNIX_MAX_S 4e9 /* in the year 2096 */

struct columns {
    const char *arrival, *input, *output;
    const char *cls, *prefix, *session, *elapsed, *user, *tool; /* optional columns, or NULL */
    bool is_timestamp;                                          /* "YYYY-MM-DD HH:MM:SS.fff" */
    bool ours;  /* arrivals may be either; seconds are not rebased */
    bool noted; /* unread columns are reported */
};

/* Days since 1970-01-01 of a Gregorian date (years start in March). */
static int64_t days_from_civil(int64_t y, int64_t m, int64_t d)
{
    y -= m <= 2;
    int64_t era = y / 400; /* y >= 0 here */
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + doe - 719468;
}

static bool date_exists(int y, int m, int d)
{
    if (y < 1970 || y >= 2200 || m < 1 || m > 12 || d < 1) {
        return false;
    }
    int64_t next = m < 12 ? days_from_civil(y, m + 1, 1) : days_from_civil(y + 1, 1, 1);
    return d <= next - days_from_civil(y, m, 1);
}

/* Parses "", "Z" or "+HH:MM" into minutes east of UTC. */
static bool zone_parse(const char *text, int *minutes)
{
    int h = 0;
    int m = 0;
    int used = 0;
    *minutes = 0;
    if (text[0] == '\0' || strcmp(text, "Z") == 0) {
        return true;
    }
    if ((text[0] != '+' && text[0] != '-') || sscanf(text + 1, "%2d:%2d%n", &h, &m, &used) != 2 ||
        used != 5 || text[6] != '\0' || h < 0 || h > 14 || m < 0 || m > 59) {
        return false;
    }
    *minutes = (text[0] == '-' ? -1 : 1) * (h * 60 + m);
    return true;
}

int64_t import_timestamp_ns(const char *text)
{
    int y;
    int mo;
    int d;
    int h;
    int mi;
    int used = 0;
    int zone = 0;
    double sec;
    char sep;
    /* sscanf also accepts "inf", "nan" and hexadecimal for %lf, and signs for %d. */
    if (text[strspn(text, "0123456789-+:. TZ")] != '\0' ||
        sscanf(text, "%4d-%2d-%2d%c%2d:%2d:%lf%n", &y, &mo, &d, &sep, &h, &mi, &sec, &used) != 7) {
        return -1;
    }
    bool ok = (sep == ' ' || sep == 'T') && date_exists(y, mo, d) && h >= 0 && h < 24 && mi >= 0 &&
              mi < 60 && sec >= 0.0 && sec < 61.0 && zone_parse(text + used, &zone);
    if (!ok) {
        return -1;
    }
    int64_t minutes = (days_from_civil(y, mo, d) * 24 + h) * 60 + mi - zone;
    return minutes < 0 ? -1 : minutes * 60 * NS_PER_S + units_ns_from_s(sec);
}

/* Parses digit by digit, because a double of seconds since 1970 is off by a tenth of a microsecond.
 * s: the value of the text, or a replacement if it was refused. */
static int64_t seconds_ns(const char *text, double s)
{
    const char *digit = strchr(text, '.');
    double whole = floor(strtod(text, NULL));
    if (digit == NULL || strpbrk(text, "eE") != NULL || whole > s || whole < s - 1.0) {
        return units_ns_from_s(s);
    }
    int64_t ns = strtoll(text, NULL, 10) * NS_PER_S;
    for (int64_t unit = NS_PER_S / 10; unit > 0 && *++digit >= '0' && *digit <= '9'; unit /= 10) {
        ns += (*digit - '0') * unit;
    }
    return ns + (*digit != '\0' && digit[1] >= '5' && digit[1] <= '9'); /* rounds the tenth digit */
}

static int64_t arrival_of(struct csvfile *f, bool is_timestamp, bool is_unix, int col,
                          struct err *e)
{
    if (!is_timestamp) {
        double min_s = is_unix ? IMPORT_MAX_S : 0.0;
        double s = csvfile_number(f, col, min_s, is_unix ? UNIX_MAX_S : IMPORT_MAX_S, e);
        return seconds_ns(csvfile_text(f, col), s);
    }
    int64_t t_ns = import_timestamp_ns(csvfile_text(f, col));
    if (t_ns < 0) {
        csvfile_refuse(f, col, e, "\"%s\" must be YYYY-MM-DD HH:MM:SS.fff", csvfile_text(f, col));
        t_ns = 0;
    }
    return t_ns;
}

/* Names of the columns that are not read, or NULL. */
static const char *unread(struct csvfile *f, const int *read, size_t n)
{
    struct text names = {0};
    for (int i = 0; i < csvfile_n_columns(f); i++) {
        bool known = false;
        for (size_t k = 0; k < n; k++) {
            known = known || read[k] == i;
        }
        if (!known && csvfile_column_name(f, i)[0] != '\0') {
            text_format(&names, "%s%s", names.n > 0 ? ", " : "", csvfile_column_name(f, i));
        }
    }
    return names.n > 0 ? xkeep(text_end(&names)) : NULL;
}

static int optional(struct csvfile *f, const char *name)
{
    return name == NULL ? -1 : csvfile_column(f, name);
}

static void csv_read(struct import *im, const struct import_format *format, FILE *in,
                     const char *path, struct err *e)
{
    const struct columns *c = format->source;
    SCOPED(csvfile_drop) struct csvfile *f = csvfile_of(in, path, e);
    if (f == NULL) {
        return;
    }
    int at = csvfile_require(f, c->arrival, e);
    int input = csvfile_require(f, c->input, e);
    int output = csvfile_require(f, c->output, e);
    int cls = optional(f, c->cls);
    int prefix = optional(f, c->prefix);
    int session = optional(f, c->session);
    int elapsed = session < 0 ? -1 : optional(f, c->elapsed);
    int user = optional(f, c->user);
    int tool = optional(f, c->tool);
    SCOPED(map_fini) struct map users = {0};
    uint32_t n_users = 0;
    im->clients = user >= 0;
    bool columns = at >= 0 && input >= 0 && output >= 0;
    bool dated = c->is_timestamp;
    bool is_unix = false;
    bool first = true; /* the first row decides: a mix would span fifty years */
    if (c->noted) {
        const int read[] = {at, input, output, cls, prefix, session, elapsed, user, tool};
        im->lost.unread = unread(f, read, sizeof read / sizeof read[0]);
    }
    while (columns && e->n < ERR_MAX_LINES && csvfile_next(f, e) == 1) {
        struct import_row r = {.end_ns = TIME_NEVER_NS, .line = (uint32_t)csvfile_line(f)};
        dated = dated || (c->ours && first && strchr(csvfile_text(f, at), ':') != NULL);
        is_unix = is_unix || (c->ours && first && strtod(csvfile_text(f, at), NULL) > IMPORT_MAX_S);
        first = false;
        r.start_ns = arrival_of(f, dated, is_unix, at, e);
        r.input = csvfile_u64(f, input, 0, IMPORT_MAX_TOKENS, e);
        r.output = csvfile_u64(f, output, 0, IMPORT_MAX_TOKENS, e);
        r.prefix = prefix < 0 ? 0 : csvfile_u64(f, prefix, 0, IMPORT_MAX_TOKENS, e);
        const char *name = session < 0 ? "" : csvfile_text(f, session);
        r.after = r.key = name[0] == '\0' ? 0 : import_key(name);
        if (!csvfile_empty(f, elapsed)) { /* API calls may have none */
            r.end_ns =
                r.start_ns + units_ns_from_s(csvfile_number(f, elapsed, 0.0, IMPORT_MAX_S, e));
        }
        if (!csvfile_empty(f, user)) {
            uint64_t key = import_key(csvfile_text(f, user));
            if (map_find(&users, key) == IMPORT_NONE) {
                map_put(&users, key, ++n_users);
            }
            r.client = (uint32_t)map_find(&users, key);
        }
        r.after_tool = !csvfile_empty(f, tool) && csvfile_u64(f, tool, 0, 1, e) == 1;
        r.cls = csvfile_empty(f, cls) ? 0 : (uint8_t)csvfile_choice(f, cls, words_classes, e);
        import_add(im, &r);
    }
    /* Dates and seconds of a log have any origin; the first request is set to zero. */
    im->rebase = dated || is_unix || (elapsed >= 0 && !c->ours);
}

/* Whether the header has the column. */
static bool has(const char *header, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = header; *at != '\0' && *at != '\n';) {
        size_t field = strcspn(at, ",\r\n");
        bool quoted = field == n + 2 && at[0] == '"';
        if ((field == n && strncmp(at, name, n) == 0) ||
            (quoted && strncmp(at + 1, name, n) == 0)) {
            return true;
        }
        at += field + (at[field] == ',' || at[field] == '\r');
    }
    return false;
}

static bool csv_is(const struct import_format *format, const cJSON *first, const char *text)
{
    const struct columns *c = format->source;
    return first == NULL && has(text, c->arrival) && has(text, c->input) && has(text, c->output) &&
           !(has(text, "session_id") && has(text, "turn")); /* a trace of xpusim */
}

static const struct columns azure = {"TIMESTAMP", "ContextTokens", "GeneratedTokens",
                                     .is_timestamp = true,
                                     .noted = true}; /* a file of 2025 has an image column */
static const struct columns burstgpt = {"Timestamp", "Request tokens", "Response tokens",
                                        .session = "Session ID", .elapsed = "Elapsed time"};
static const struct columns plain = {"arrival_s",
                                     "input_tokens",
                                     "output_tokens",
                                     .cls = "class",
                                     .prefix = "prefix_tokens",
                                     .session = "session_id",
                                     .elapsed = "e2e_s",
                                     .user = "user",
                                     .tool = "after_tool",
                                     .ours = true,
                                     .noted = true};
static const struct columns splitwise = {"arrival_timestamp", "prompt_size", "token_size",
                                         .is_timestamp = false};
static const struct columns vidur = {"arrived_at", "num_prefill_tokens", "num_decode_tokens",
                                     .is_timestamp = false};

const struct import_format import_csv_formats[] = {
    {"azure", csv_is, csv_read, &azure}, {"burstgpt", csv_is, csv_read, &burstgpt},
    {"plain", csv_is, csv_read, &plain}, {"splitwise", csv_is, csv_read, &splitwise},
    {"vidur", csv_is, csv_read, &vidur}, {NULL, NULL, NULL, NULL},
};
