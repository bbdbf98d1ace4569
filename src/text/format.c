#include "text/format.h"

#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "text/html.h"

void format_number(struct buf *out, enum language language, int64_t number)
{
    char digits[32];
    int len = snprintf(digits, sizeof digits, "%llu",
                       number < 0 ? 0ULL - (unsigned long long)number : (unsigned long long)number);
    if (number < 0)
        buf_addz(out, "\u2212"); /* a minus sign */
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            buf_addz(out, language == LANGUAGE_DE ? "." : ",");
        buf_add(out, (struct str){digits + i, 1});
    }
}

static const enum text months[] = {TEXT_MONTH_01, TEXT_MONTH_02, TEXT_MONTH_03, TEXT_MONTH_04,
                                   TEXT_MONTH_05, TEXT_MONTH_06, TEXT_MONTH_07, TEXT_MONTH_08,
                                   TEXT_MONTH_09, TEXT_MONTH_10, TEXT_MONTH_11, TEXT_MONTH_12};

struct moment {
    int64_t year, month, day;
    struct str clock, seconds; /* "14:32", ":07" */
};

/* "2026-12-15T14:32:07.123Z"; the offset is always Z here. */
static bool parse(struct str text, struct moment *ret)
{
    if (text.len < sizeof "2026-12-15T14:32Z" - 1 || text.at[4] != '-' || text.at[7] != '-' || text.at[10] != 'T')
        return false;
    ret->clock = (struct str){text.at + 11, 5};
    ret->seconds = text.at[16] == ':' && text.len >= 20 ? (struct str){text.at + 16, 3} : STR("");
    return !str_to_i64((struct str){text.at, 4}, 0, 9999, &ret->year) &&
           !str_to_i64((struct str){text.at + 5, 2}, 1, 12, &ret->month) &&
           !str_to_i64((struct str){text.at + 8, 2}, 1, 31, &ret->day);
}

static void add_moment(struct buf *out, const struct sentences *sentences, enum language language,
                       const struct moment *m, enum time_format format)
{
    buf_addf(out, "%d%s ", (int)m->day, language == LANGUAGE_DE ? "." : "");
    buf_add(out, sentence(sentences, language, months[m->month - 1]));
    buf_addf(out, " %d", (int)m->year);
    if (format != FORMAT_DATE)
        buf_addf(out, ", %.*s%.*s UTC", STR_ARGS(m->clock), STR_ARGS(format == FORMAT_SECONDS ? m->seconds : STR("")));
}

void format_time(struct buf *out, const struct sentences *sentences, enum language language, struct str rfc3339,
                 enum time_format format)
{
    struct moment m;
    if (!parse(rfc3339, &m))
        return;
    buf_addf(out, "<time datetime=\"");
    html_add_text(out, rfc3339);
    buf_addf(out, "\" data-%s>", format == FORMAT_DATE ? "date" : format == FORMAT_CLOCK ? "time" : "seconds");
    AUTO(buf) struct buf plain = buf_new(1024);
    add_moment(&plain, sentences, language, &m, format);
    html_add_text(out, buf_str(&plain));
    buf_addz(out, "</time>");
}

void format_plain_time(struct buf *out, const struct sentences *sentences, enum language language, struct str rfc3339)
{
    struct moment m;
    if (parse(rfc3339, &m))
        add_moment(out, sentences, language, &m, FORMAT_CLOCK);
}

void format_masked(struct buf *out, struct str address)
{
    const char *at = address.len ? memrchr(address.at, '@', address.len) : NULL;
    size_t local = at ? (size_t)(at - address.at) : address.len, shown = 0;
    for (int i = 0; i < (local > 3 ? 2 : 1) && shown < local; i++) {
        size_t len = str_utf8_len((struct str){address.at + shown, local - shown});
        shown += len ? len : local - shown;
    }
    html_add_text(out, (struct str){address.at, shown});
    if (address.len)
        buf_addz(out, "\u2022\u2022\u2022");
    if (at)
        html_add_text(out, (struct str){at, address.len - local});
}

void format_query(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("-_.~", c));
        if (plain)
            buf_add(out, (struct str){text.at + i, 1});
        else
            buf_addf(out, "%%%02X", c);
    }
}
