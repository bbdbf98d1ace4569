/* The types of settings: each parses text into a field and describes what it expects. */
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "settings/table.h"

/* Plain values */

static bool has_control(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] < ' ' || text.at[i] == 0x7f)
            return true;
    return false;
}

static enum err parse_string(const struct setting *row, struct str text, struct arena *arena, void *field,
                             struct str *wrong)
{
    (void)arena;
    (void)wrong;
    if ((int64_t)text.len < row->min || (int64_t)text.len > row->max || has_control(text))
        return ERR_INPUT;
    *(const char **)field = text.at;
    return OK;
}

static void expects_string(const struct setting *row, struct buf *out)
{
    buf_addf(out, "text of %lld to %lld bytes without control characters", (long long)row->min, (long long)row->max);
}

const struct setting_type setting_string = {parse_string, expects_string, NULL};

static void expects_secret(const struct setting *row, struct buf *out)
{
    buf_addf(out, "a secret of %lld to %lld characters", (long long)row->min, (long long)row->max);
}

static void show_secret(struct str text, struct buf *out)
{
    (void)text;
    buf_addz(out, "***");
}

const struct setting_type setting_secret = {parse_string, expects_secret, show_secret};

/* A choice is stored as an int. */
_Static_assert(sizeof(enum pg_prepare) == sizeof(int) && sizeof(enum log_level) == sizeof(int), "choices are ints");

static enum err parse_choice(const struct setting *row, struct str text, struct arena *arena, void *field,
                             struct str *wrong)
{
    (void)arena;
    (void)wrong;
    for (int i = 0; row->choices[i]; i++) {
        if (str_eq(text, str_of(row->choices[i]))) {
            memcpy(field, &i, sizeof i);
            return OK;
        }
    }
    return ERR_INPUT;
}

static void expects_choice(const struct setting *row, struct buf *out)
{
    for (size_t i = 0; row->choices[i]; i++) {
        const char *before = i == 0 ? "" : row->choices[i + 1] ? ", " : " or ";
        buf_addf(out, "%s%s", before, row->choices[i]);
    }
}

const struct setting_type setting_choice = {parse_choice, expects_choice, NULL};

static enum err parse_switch(const struct setting *row, struct str text, struct arena *arena, void *field,
                             struct str *wrong)
{
    (void)row;
    (void)arena;
    (void)wrong;
    bool on = str_eq(text, STR("on"));
    if (!on && !str_eq(text, STR("off")))
        return ERR_INPUT;
    *(bool *)field = on;
    return OK;
}

static void expects_switch(const struct setting *row, struct buf *out)
{
    (void)row;
    buf_addz(out, "on or off");
}

const struct setting_type setting_switch = {parse_switch, expects_switch, NULL};

static enum err parse_integer(const struct setting *row, struct str text, struct arena *arena, void *field,
                              struct str *wrong)
{
    (void)arena;
    (void)wrong;
    return str_to_i64(text, row->min, row->max, field);
}

static void expects_integer(const struct setting *row, struct buf *out)
{
    buf_addf(out, "a whole number from %lld to %lld", (long long)row->min, (long long)row->max);
}

static void expects_milliseconds(const struct setting *row, struct buf *out)
{
    buf_addf(out, "a whole number of milliseconds from %lld to %lld", (long long)row->min, (long long)row->max);
}

const struct setting_type setting_integer = {parse_integer, expects_integer, NULL};
const struct setting_type setting_milliseconds = {parse_integer, expects_milliseconds, NULL};

/* Negative for off. */
static enum err parse_threshold(const struct setting *row, struct str text, struct arena *arena, void *field,
                                struct str *wrong)
{
    if (!str_eq(text, STR("off")))
        return parse_integer(row, text, arena, field, wrong);
    *(int64_t *)field = -1;
    return OK;
}

static void expects_threshold(const struct setting *row, struct buf *out)
{
    expects_integer(row, out);
    buf_addz(out, ", or off");
}

const struct setting_type setting_threshold = {parse_threshold, expects_threshold, NULL};

/* Durations and limits */

static enum err parse_duration(const struct setting *row, struct str text, struct arena *arena, void *field,
                               struct str *wrong)
{
    (void)arena;
    (void)wrong;
    int64_t ms;
    enum err e = str_to_duration_ms(text, &ms);
    if (e || ms < row->min || ms > row->max)
        return ERR_INPUT;
    *(int64_t *)field = ms;
    return OK;
}

static void add_duration(struct buf *out, int64_t ms)
{
    static const struct {
        int64_t ms;
        const char *unit;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
    size_t i = 0;
    while (ms % units[i].ms != 0)
        i++;
    if (ms == 0)
        buf_addz(out, "0");
    else
        buf_addf(out, "%lld%s", (long long)(ms / units[i].ms), units[i].unit);
}

static void expects_duration(const struct setting *row, struct buf *out)
{
    buf_addz(out, "a duration from ");
    add_duration(out, row->min);
    buf_addz(out, " to ");
    add_duration(out, row->max);
    buf_addz(out, " with its unit: ms, s, m, h or d");
}

const struct setting_type setting_duration = {parse_duration, expects_duration, NULL};

/* Negative for off. */
static enum err parse_optional_duration(const struct setting *row, struct str text, struct arena *arena, void *field,
                                        struct str *wrong)
{
    if (!str_eq(text, STR("off")))
        return parse_duration(row, text, arena, field, wrong);
    *(int64_t *)field = -1;
    return OK;
}

static void expects_optional_duration(const struct setting *row, struct buf *out)
{
    expects_duration(row, out);
    buf_addz(out, ", or off");
}

const struct setting_type setting_optional_duration = {parse_optional_duration, expects_optional_duration, NULL};

static enum err parse_limit(const struct setting *row, struct str text, struct arena *arena, void *field,
                            struct str *wrong)
{
    (void)row;
    (void)arena;
    (void)wrong;
    struct limit limit = {0, 0};
    struct str seconds = text, requests;
    if (!str_eq(text, STR("off")) &&
        (!str_split(&seconds, '/', &requests) || str_to_i64(requests, 1, 1000000, &limit.requests) ||
         str_to_i64(seconds, 1, 86400, &limit.seconds)))
        return ERR_INPUT;
    *(struct limit *)field = limit;
    return OK;
}

static void expects_limit(const struct setting *row, struct buf *out)
{
    (void)row;
    buf_addz(out, "requests/seconds such as 5/60, at most 1000000/86400, or off");
}

const struct setting_type setting_limit = {parse_limit, expects_limit, NULL};

/* Addresses */

static enum err parse_listen(const struct setting *row, struct str text, struct arena *arena, void *field,
                             struct str *wrong)
{
    (void)row;
    (void)arena;
    (void)wrong;
    size_t colon = text.len;
    while (colon > 0 && text.at[colon - 1] != ':')
        colon--;
    if (colon == 0)
        return ERR_INPUT;
    struct str host = {text.at, colon - 1}, port = {text.at + colon, text.len - colon};
    bool bracketed = host.len > 0 && host.at[0] == '[';
    struct ip ip;
    int64_t number;
    /* Without brackets the last group of an IPv6 address would be read as a port. */
    if (ip_parse(host, &ip) || (!bracketed && memchr(host.at, ':', host.len)) || str_to_i64(port, 0, 65535, &number))
        return ERR_INPUT;
    *(const char **)field = text.at;
    return OK;
}

static void expects_listen(const struct setting *row, struct buf *out)
{
    (void)row;
    buf_addz(out, "an address and port such as 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080");
}

const struct setting_type setting_listen = {parse_listen, expects_listen, NULL};

/* libpq parses the connection string, so that no part of a password is printed as a host. */
static PQconninfoOption *connection_options(struct str text)
{
    char *words = NULL;
    PQconninfoOption *options = PQconninfoParse(text.at, &words);
    PQfreemem(words); /* may quote the password */
    return options;
}

/* libpq checks ports only when it connects; after a "/" in a password the rest is parsed as a port. */
static bool ports_are_numbers(const PQconninfoOption *options)
{
    for (; options->keyword; options++) {
        if (strcmp(options->keyword, "port") != 0 || !options->val || !*options->val)
            continue;
        struct str rest = str_of(options->val), port;
        int64_t number;
        while (str_split(&rest, ',', &port))
            if (port.len > 0 && str_to_i64(port, 1, 65535, &number))
                return false;
    }
    return true;
}

static enum err parse_database(const struct setting *row, struct str text, struct arena *arena, void *field,
                               struct str *wrong)
{
    (void)row;
    (void)arena;
    (void)wrong;
    if (has_control(text))
        return ERR_INPUT;
    PQconninfoOption *options = connection_options(text);
    bool right = options && ports_are_numbers(options);
    PQconninfoFree(options);
    if (!right)
        return ERR_INPUT;
    *(const char **)field = text.at;
    return OK;
}

static void expects_database(const struct setting *row, struct buf *out)
{
    (void)row;
    buf_addz(out,
             "a PostgreSQL URL such as postgresql://user:password@host:5432/database (in the password, / is written "
             "%2F and @ %40), or key=value pairs as libpq reads them");
}

/* Text that libpq cannot parse may contain a password anywhere: of a URL without ? only the part after the last @ is
 * shown, other text only when it contains none of : = ? @. */
static void show_unreadable(struct str text, struct buf *out)
{
    const char *slashes = memmem(text.at, text.len, "://", 3);
    size_t scheme = slashes ? (size_t)(slashes - text.at) + 3 : 0;
    struct str rest = {text.at + scheme, text.len - scheme};
    const char *at = slashes ? memrchr(rest.at, '@', rest.len) : NULL;
    bool doubtful = at ? memchr(rest.at, '?', rest.len) != NULL : strpbrk(rest.at, ":=?@") != NULL;
    buf_add(out, (struct str){text.at, scheme});
    if (at || doubtful)
        buf_addz(out, "***");
    if (!doubtful)
        buf_addz(out, at ? at : rest.at);
}

static void show_database(struct str text, struct buf *out)
{
    PQconninfoOption *options = connection_options(text);
    if (!options || !ports_are_numbers(options)) {
        PQconninfoFree(options);
        show_unreadable(text, out);
        return;
    }
    const char *before = "";
    for (const PQconninfoOption *o = options; o->keyword; o++) {
        if (!o->val)
            continue;
        bool hidden = strchr(o->dispchar, '*') || strstr(o->keyword, "password");
        buf_addf(out, "%s%s=%s", before, o->keyword, hidden ? "***" : o->val);
        before = " ";
    }
    PQconninfoFree(options);
}

const struct setting_type setting_database = {parse_database, expects_database, show_database};
