/* The types of settings that hold several values, separated by commas. */
#include <string.h>

#include "settings/table.h"

/* Parses one item into its element of the array. */
typedef enum err (*item_parser)(const struct setting *row, struct str item, struct arena *arena, void *into);

/* Takes the next item of a list, as str_split() does. */
typedef bool (*item_splitter)(struct str *rest, struct str *ret_item);

static bool split_at_comma(struct str *rest, struct str *ret_item)
{
    return str_split(rest, ',', ret_item);
}

/* Parses every item with `parse` into an array of elements of `size` bytes; an item that is not valid becomes *wrong. */
static enum err parse_split(const struct setting *row, struct str text, struct arena *arena, item_splitter split,
                            item_parser parse, size_t size, void **ret, size_t *ret_count, struct str *wrong)
{
    struct str rest = text, item;
    size_t count = 0;
    while (split(&rest, &item))
        count++;
    if (count > row->items_max)
        return ERR_INPUT;

    char *all = arena_take(arena, count * size);
    if (!all)
        return ERR_MEMORY;
    rest = text;
    for (size_t i = 0; split(&rest, &item); i++) {
        item = str_trim(item);
        enum err e = item.len ? parse(row, item, arena, all + i * size) : ERR_INPUT;
        if (e) {
            *wrong = item.len ? item : text;
            return e;
        }
    }
    *ret = all;
    *ret_count = count;
    return OK;
}

static enum err parse_list(const struct setting *row, struct str text, struct arena *arena, item_parser parse,
                           size_t size, void **ret, size_t *ret_count, struct str *wrong)
{
    return parse_split(row, text, arena, split_at_comma, parse, size, ret, ret_count, wrong);
}

static void expects_list(const struct setting *row, const char *what, struct buf *out)
{
    buf_addf(out, "%s (up to %zu, separated by commas)", what, row->items_max);
}

/* Networks */

static enum err parse_cidr(const struct setting *row, struct str item, struct arena *arena, void *into)
{
    (void)row;
    (void)arena;
    return cidr_parse(item, into);
}

static enum err parse_cidrs(const struct setting *row, struct str text, struct arena *arena, void *field,
                            struct str *wrong)
{
    struct setting_cidrs *list = field;
    if (str_eq(text, STR("none")))
        return OK;
    void *all;
    enum err e = parse_list(row, text, arena, parse_cidr, sizeof(struct cidr), &all, &list->count, wrong);
    if (!e)
        list->at = all;
    return e;
}

static void expects_cidrs(const struct setting *row, struct buf *out)
{
    expects_list(row, "a network such as 10.0.0.0/8, 192.0.2.7 or 2001:db8::/32", out);
    buf_addz(out, ", or none");
}

const struct setting_type setting_cidrs = {parse_cidrs, expects_cidrs, NULL};

/* Origins as browsers send them: lower case, no path, no default port */

static bool all_of(struct str s, const char *allowed)
{
    for (size_t i = 0; i < s.len; i++)
        if (!s.at[i] || !strchr(allowed, s.at[i]))
            return false;
    return s.len > 0;
}

/* "app.example.com", "app.example.com:8443", "[::1]:3000" */
static bool is_authority(struct str s)
{
    size_t colon = s.len;
    for (size_t i = 0; i < s.len; i++)
        if (s.at[i] == ':' && (s.at[0] != '[' || s.at[i - 1] == ']'))
            colon = i;
    struct str host = {s.at, colon};
    int64_t port;
    if (colon < s.len && str_to_i64((struct str){s.at + colon + 1, s.len - colon - 1}, 1, 65535, &port))
        return false;
    struct ip ip;
    if (host.len > 0 && host.at[0] == '[')
        return ip_parse(host, &ip) == OK;
    return all_of(host, "abcdefghijklmnopqrstuvwxyz0123456789.-_");
}

static bool ends(struct str s, struct str suffix)
{
    return s.len >= suffix.len && memcmp(s.at + s.len - suffix.len, suffix.at, suffix.len) == 0;
}

static enum err parse_origin(const struct setting *row, struct str item, struct arena *arena, void *into)
{
    (void)row;
    const char *slashes = memmem(item.at, item.len, "://", 3);
    if (!slashes)
        return ERR_INPUT;
    char *copy = arena_take(arena, item.len + 1);
    if (!copy)
        return ERR_MEMORY;
    memcpy(copy, item.at, item.len);
    str_lower(copy, item.len);

    struct str origin = {copy, item.len};
    struct str scheme = {copy, (size_t)(slashes - item.at)};
    struct str authority = {copy + scheme.len + 3, item.len - scheme.len - 3};
    if (!all_of(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+.-") || !is_authority(authority))
        return ERR_INPUT;
    if (str_eq(scheme, STR("https")) && ends(origin, STR(":443")))
        copy[origin.len - 4] = '\0';
    if (str_eq(scheme, STR("http")) && ends(origin, STR(":80")))
        copy[origin.len - 3] = '\0';
    *(const char **)into = copy;
    return OK;
}

static enum err parse_origins(const struct setting *row, struct str text, struct arena *arena, void *field,
                              struct str *wrong)
{
    static const char *const any[] = {"*"};
    struct setting_strings *list = field;
    if (str_eq(text, STR("none")))
        return OK;
    if (str_eq(text, STR("*"))) {
        *list = (struct setting_strings){any, 1};
        return OK;
    }
    void *all;
    enum err e = parse_list(row, text, arena, parse_origin, sizeof(char *), &all, &list->count, wrong);
    if (!e)
        list->at = all;
    return e;
}

static void expects_origins(const struct setting *row, struct buf *out)
{
    expects_list(row, "an origin such as https://app.example.com", out);
    buf_addz(out, ", * for every one, or none");
}

const struct setting_type setting_origins = {parse_origins, expects_origins, NULL};

/* Columns of tables */

static enum err parse_column(const struct setting *row, struct str item, struct arena *arena, void *into)
{
    (void)row;
    return ownership_parse(item, arena, into);
}

static enum err parse_columns(const struct setting *row, struct str text, struct arena *arena, void *field,
                              struct str *wrong)
{
    struct setting_columns *list = field;
    void *all;
    enum err e = parse_split(row, text, arena, ownership_split, parse_column, sizeof(struct ownership_column), &all,
                             &list->count, wrong);
    if (!e)
        list->at = all;
    return e;
}

static void expects_columns(const struct setting *row, struct buf *out)
{
    expects_list(row,
                 "a column such as companies.owner_admin_uuid or public.companies.owner_admin_uuid, or one with a "
                 "condition, such as profiles.id where onboarded_at is not null: without a semicolon, comment, "
                 "parameter, backslash or sub-select",
                 out);
}

const struct setting_type setting_columns = {parse_columns, expects_columns, NULL};

/* Durations */

static enum err parse_one_duration(const struct setting *row, struct str item, struct arena *arena, void *into)
{
    return setting_duration.parse(row, item, arena, into, &item);
}

static enum err parse_durations(const struct setting *row, struct str text, struct arena *arena, void *field,
                                struct str *wrong)
{
    struct setting_durations *list = field;
    if (str_eq(text, STR("none")))
        return OK;
    void *all;
    enum err e = parse_list(row, text, arena, parse_one_duration, sizeof(int64_t), &all, &list->count, wrong);
    if (!e)
        list->at_ms = all;
    return e;
}

static void expects_durations(const struct setting *row, struct buf *out)
{
    setting_duration.expects(row, out);
    expects_list(row, "", out);
    buf_addz(out, ", or none");
}

const struct setting_type setting_durations = {parse_durations, expects_durations, NULL};
