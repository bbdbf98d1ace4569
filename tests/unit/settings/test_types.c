#include <stdlib.h>
#include <string.h>

#include "../base/unit.h"
#include "settings/table.h"

/* Rows of the types that no setting of this version has are made here. */
static const struct setting some_duration = {.name = "D", .type = &setting_duration, .min = 1000, .max = 3600000};
static const struct setting some_durations = {
    .name = "DS", .type = &setting_durations, .min = 1000, .max = 864000000, .items_max = 3};
static const struct setting some_limit = {.name = "L", .type = &setting_limit};

static const struct setting *row(const char *name)
{
    bool from_file;
    const struct setting *found = setting_find(name, &from_file);
    assert_non_null(found);
    return found;
}

/* Any field fits in here. */
union field {
    char bytes[64];
    const char *z;
    int64_t n;
    int choice;
    bool on;
    struct limit limit;
    struct setting_durations durations;
    struct setting_cidrs cidrs;
    struct setting_strings strings;
    struct setting_columns columns;
};

static enum err parse(struct arena *arena, const struct setting *r, const char *text, union field *ret,
                      struct str *wrong)
{
    memset(ret, 0, sizeof *ret);
    struct str copy = arena_copy(arena, str_of(text));
    *wrong = copy;
    return r->type->parse(r, copy, arena, ret, wrong);
}

/* A list of texts, NULL behind the last. */
static void all_are(enum err expected, const struct setting *r, const char *const *texts)
{
    for (; *texts; texts++) {
        AUTO(arena) struct arena *arena = arena_new(256, 65536);
        union field field;
        struct str wrong;
        enum err e = parse(arena, r, *texts, &field, &wrong);
        if (e != expected)
            fail_msg("%s: \"%s\" gave %s, not %s", r->name, *texts, err_name(e), err_name(expected));
    }
}

#define GOOD(r, ...) all_are(OK, r, (const char *const[]){__VA_ARGS__, NULL})
#define BAD(r, ...) all_are(ERR_INPUT, r, (const char *const[]){__VA_ARGS__, NULL})

static void whole_numbers_keep_to_their_bounds(void **state UNUSED)
{
    GOOD(row("RECLAIM_WORKERS"), "1", "64", "007");
    BAD(row("RECLAIM_WORKERS"), "0", "65", "-1", "+1", "1.5", "1e1", "0x10", " 1", "1 ", "many", "4 workers",
        "99999999999999999999");
    GOOD(row("RECLAIM_MAX_CONNECTIONS"), "16", "200000");
    BAD(row("RECLAIM_MAX_CONNECTIONS"), "15", "200001");
    GOOD(row("RECLAIM_DATABASE_CONNECTIONS"), "1", "200");
    BAD(row("RECLAIM_DATABASE_CONNECTIONS"), "0", "201");
    GOOD(row("RECLAIM_PROBE_HOLD_MS"), "0", "150", "60000");
    BAD(row("RECLAIM_PROBE_HOLD_MS"), "60001", "150ms", "-5");
    BAD(row("RECLAIM_PROBE_TIMEOUT_MS"), "0");
}

static void choices_are_the_words_and_nothing_else(void **state UNUSED)
{
    GOOD(row("RECLAIM_PREPARE"), "auto", "on", "off");
    BAD(row("RECLAIM_PREPARE"), "Auto", "true", "1", "o", "offf");
    GOOD(row("RECLAIM_MIGRATE"), "on", "off");
    BAD(row("RECLAIM_MIGRATE"), "ON", "yes", "auto");
    GOOD(row("RECLAIM_LOG_LEVEL"), "debug", "info", "warn", "error");
    BAD(row("RECLAIM_LOG_LEVEL"), "warning", "trace");
    GOOD(row("RECLAIM_CONTRACT"), "cleanup-v1", "registration-recovery");
    BAD(row("RECLAIM_CONTRACT"), "cleanup-v2", "cleanup");
}

static void durations_need_a_unit_and_keep_to_their_bounds(void **state UNUSED)
{
    GOOD(&some_duration, "1s", "1000ms", "60m", "1h");
    BAD(&some_duration, "999ms", "61m", "10", "1d", "-1s", "1.5s", "1 s", "s", "1S", "1sec");
    GOOD(row("RECLAIM_DRAIN"), "0", "0s", "10m");
    BAD(row("RECLAIM_DRAIN"), "11m", "30");
    GOOD(&some_durations, "7d,1d", "1s", "1s, 2s ,3s");
    BAD(&some_durations, "7d,1", "7d,", ",7d", "1s,1s,1s,1s", "7d;1d", "11d");
}

static void limits_are_requests_and_seconds_or_off(void **state UNUSED)
{
    GOOD(&some_limit, "5/60", "1/1", "1000000/86400", "off");
    BAD(&some_limit, "5", "5/", "/60", "5/60/1", "0/60", "5/0", "5 / 60", "on", "1000001/1", "1/86401", "5/60s");
    AUTO(arena) struct arena *arena = arena_new(256, 65536);
    union field field;
    struct str wrong;
    assert_int_equal(parse(arena, &some_limit, "3/3600", &field, &wrong), OK);
    assert_int_equal(field.limit.requests, 3);
    assert_int_equal(field.limit.seconds, 3600);
    assert_int_equal(parse(arena, &some_limit, "off", &field, &wrong), OK);
    assert_int_equal(field.limit.requests, 0);
}

static void listen_addresses_are_numeric_with_a_port(void **state UNUSED)
{
    GOOD(row("RECLAIM_LISTEN"), "127.0.0.1:8080", "0.0.0.0:1", "[::1]:65535", "[2001:db8::7]:80", "127.0.0.1:0");
    BAD(row("RECLAIM_LISTEN"), "127.0.0.1", "8080", ":8080", "localhost:8080", "::1:8080", "[::1]",
        "[::1]:", "[127.0.0.1]:80", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:http", "127.0.0.1:8080 ",
        "300.0.0.1:80", "[::1:80", "::1]:80");
}

static void networks_have_no_bits_behind_their_prefix(void **state UNUSED)
{
    GOOD(row("RECLAIM_TRUSTED_PROXIES"), "10.0.0.0/8", "10.0.0.0/8, 2001:db8::/32,192.0.2.7", "none", "::1");
    BAD(row("RECLAIM_TRUSTED_PROXIES"), "10.0.0.1/8", "10.0.0.0/33", "2001:db8::/129", "10.0.0.0/", "10.0.0.0/8,",
        "10.0.0.0/8,,::1", "10.0.0.0/8;::1", "proxy.example.com", "*", "none,::1");
    AUTO(arena) struct arena *arena = arena_new(256, 65536);
    union field field;
    struct str wrong;
    assert_int_equal(parse(arena, row("RECLAIM_TRUSTED_PROXIES"), "10.0.0.0/8, 2001:db8::/32", &field, &wrong), OK);
    assert_int_equal(field.cidrs.count, 2);
    struct ip inside, outside;
    assert_int_equal(ip_parse(STR("2001:db8::9"), &inside), OK);
    assert_int_equal(ip_parse(STR("2001:db9::9"), &outside), OK);
    assert_true(cidr_holds(&field.cidrs.at[1], &inside));
    assert_false(cidr_holds(&field.cidrs.at[1], &outside));
    assert_int_equal(parse(arena, row("RECLAIM_TRUSTED_PROXIES"), "10.0.0.0/8, 10.0.0.1/8 ,::1", &field, &wrong),
                     ERR_INPUT);
    assert_str(wrong, "10.0.0.1/8");
}

static void a_list_has_a_ceiling(void **state UNUSED)
{
    char list[1024] = "::1";
    for (int i = 1; i < 64; i++)
        memcpy(list + strlen(list), ",::1", 5);
    GOOD(row("RECLAIM_TRUSTED_PROXIES"), list);
    memcpy(list + strlen(list), ",::1", 5);
    BAD(row("RECLAIM_TRUSTED_PROXIES"), list);
    GOOD(row("RECLAIM_OWNERSHIP"), "a.a,a.b,a.c,a.d,a.e,a.f,a.g,a.h");
    BAD(row("RECLAIM_OWNERSHIP"), "a.a,a.b,a.c,a.d,a.e,a.f,a.g,a.h,a.i");
}

static void origins_take_the_form_that_browsers_send(void **state UNUSED)
{
    const struct setting *origins = row("RECLAIM_CORS_ORIGINS");
    GOOD(origins, "*", "none", "https://app.example.com", "http://localhost:3000,http://[::1]:3000",
         "capacitor://localhost");
    BAD(origins, "https://", "app.example.com", "https://app.example.com/", "https://app.example.com/x", "https://a b",
        "*,https://a.example.com", "https://*.example.com", "null", "https://a.example.com:0",
        "https://a.example.com:99999", "https://user@a.example.com", "://a.example.com", "https://[::1",
        "https://a.example.com:", "https://a?b", "https://:80", "https://::1");
    AUTO(arena) struct arena *arena = arena_new(256, 65536);
    union field field;
    struct str wrong;
    const char *text =
        "HTTPS://App.Example.com:443, http://a.example.com:80,https://b.example.com:80,http://[::1]:3000";
    assert_int_equal(parse(arena, origins, text, &field, &wrong), OK);
    assert_int_equal(field.strings.count, 4);
    assert_string_equal(field.strings.at[0], "https://app.example.com");
    assert_string_equal(field.strings.at[1], "http://a.example.com");
    assert_string_equal(field.strings.at[2], "https://b.example.com:80");
    assert_string_equal(field.strings.at[3], "http://[::1]:3000");
    assert_int_equal(parse(arena, origins, "*", &field, &wrong), OK);
    assert_int_equal(field.strings.count, 1);
    assert_string_equal(field.strings.at[0], "*");
    assert_int_equal(parse(arena, origins, "none", &field, &wrong), OK);
    assert_int_equal(field.strings.count, 0);
}

static void ownership_names_are_plain_identifiers(void **state UNUSED)
{
    const struct setting *ownership = row("RECLAIM_OWNERSHIP");
    GOOD(ownership, "companies.owner", "tenants.companies.owner", "_a._1", "A.b , c.d");
    BAD(ownership, "companies", "a.b.c.d", "a.", ".b", "a..b", "1a.b", "a.b-c", "a.b\"", "a.b;drop table x", "a.b,",
        "a b.c", "é.b", "none", "a.x23456789012345678901234567890123456789012345678901234567890abcd");
    AUTO(arena) struct arena *arena = arena_new(256, 65536);
    union field field;
    struct str wrong;
    assert_int_equal(parse(arena, ownership, "Companies.owner,tenants.people.id", &field, &wrong), OK);
    assert_int_equal(field.columns.count, 2);
    assert_string_equal(field.columns.at[0].schema, "public");
    assert_string_equal(field.columns.at[0].table, "Companies");
    assert_string_equal(field.columns.at[0].column, "owner");
    assert_string_equal(field.columns.at[1].schema, "tenants");
    assert_string_equal(field.columns.at[1].table, "people");
    assert_string_equal(field.columns.at[1].column, "id");
}

static void a_condition_on_ownership_is_complete_in_itself(void **state UNUSED)
{
    const struct setting *ownership = row("RECLAIM_OWNERSHIP");
    GOOD(ownership, "p.id where x", "p.id  WHERE\tx is not null", "p.id where (a, b) = (1, 2),c.d",
         "p.id where kind in ('a', 'b,)', '''') and \"odd; name\" > 1.5e3", "p.id where tags[1] = 'x' , c.d",
         "p.id where name like '%s%'", "p.id where selected and tables > 0");
    BAD(ownership, "p.id where", "p.id where ", "p.id when x", "p.id x", "p.id where x; drop table y",
        "p.id where x -- y", "p.id where x /* y */", "p.id where (x", "p.id where x)", "p.id where x) or (true",
        "p.id where x = 'a", "p.id where \"x", "p.id where x = $1", "p.id where x = $$a$$", "p.id where x = E'\\''",
        "p.id where exists (select 1)", "p.id where x in (TABLE y)", "p.id where x in (values (1))", "p.id where x,",
        "p.id where x,,c.d", "p.id where x\ny");
    AUTO(arena) struct arena *arena = arena_new(256, 65536);
    union field field;
    struct str wrong;
    assert_int_equal(
        parse(arena, ownership, "profiles.id where (a, \"B\") = (1, 'x,(') , companies.owner", &field, &wrong), OK);
    assert_int_equal(field.columns.count, 2);
    assert_string_equal(field.columns.at[0].column, "id");
    assert_string_equal(field.columns.at[0].condition, "(a, \"B\") = (1, 'x,(')");
    assert_null(field.columns.at[1].condition);
}

static void database_addresses_are_what_libpq_reads(void **state UNUSED)
{
    GOOD(row("RECLAIM_DATABASE_URL"), "postgres://host/db",
         "postgresql://u:p%2Fw@h1:5432,h2:5433/db?target_session_attrs=any", "postgresql:///db?host=/run/postgresql",
         "host=/run/postgresql dbname=db", "host=a,b port=1,2", "postgres://[::1]:5/db");
    BAD(row("RECLAIM_DATABASE_URL"), "nonsense", "mysql://h/db", "http://h/db", "postgres://h:http/db",
        "postgres://h:0/db", "postgres://u:pa/ss@h/db", "postgres://h:70000/db", "postgres://h/db?nosuch=1", "host",
        "nosuch=1", "postgres://h/%zz", "host=a port=x", "host=a\tport=1");
}

static void secrets_have_a_length(void **state UNUSED)
{
    char longest[SECRET_KEY_MAX + 2];
    memset(longest, 'k', sizeof longest);
    longest[SECRET_KEY_MAX + 1] = '\0';
    BAD(row("RECLAIM_SECRET_KEY"), "short", "1234567890123456789012345678901", longest,
        "12345678901234567890\n12345678901234567890");
    longest[SECRET_KEY_MAX] = '\0';
    GOOD(row("RECLAIM_SECRET_KEY"), "12345678901234567890123456789012", longest);
    BAD(row("RECLAIM_DATA_DIR"), "a\nb", "\x7f");
    GOOD(row("RECLAIM_DATA_DIR"), "/var/lib/reclaim", "./daten für später");
}

static void shows(const char *name, const char *text, const char *expected)
{
    AUTO(buf) struct buf out = buf_new(4096);
    setting_show(row(name), str_of(text), &out);
    assert_str(buf_str(&out), expected);
}

static void what_is_shown_holds_no_password(void **state UNUSED)
{
    shows("RECLAIM_SECRET_KEY", "12345678901234567890123456789012", "***");
    shows("RECLAIM_DATABASE_URL", "postgres://u:pw@h:5/db?sslmode=require",
          "user=u password=*** dbname=db host=h port=5 sslmode=require");
    shows("RECLAIM_DATABASE_URL", "postgres://h/db?user=u&password=pw", "user=u password=*** dbname=db host=h");
    shows("RECLAIM_DATABASE_URL", "host=h password='p w' dbname=db", "password=*** dbname=db host=h");
    shows("RECLAIM_DATABASE_URL", "postgres://h/db?sslpassword=pw", "dbname=db host=h sslpassword=***");
    shows("RECLAIM_DATABASE_URL", "nonsense", "nonsense");
    shows("RECLAIM_DATABASE_URL", "mysql://u:pw@h:3306/db", "mysql://***@h:3306/db");
    shows("RECLAIM_DATABASE_URL", "mysql://u:p@w@h/db", "mysql://***@h/db");
    shows("RECLAIM_DATABASE_URL", "mysql://h/db?password=p@w", "mysql://***");
    shows("RECLAIM_DATABASE_URL", "mysql://u:pw", "mysql://***");
    shows("RECLAIM_DATABASE_URL", "mysql://h/db", "mysql://h/db");
    shows("RECLAIM_DATABASE_URL", "postgres://u:p%zz@h/db", "postgres://***@h/db");
    shows("RECLAIM_DATABASE_URL", "pasword=p@w", "***");
    shows("RECLAIM_DATABASE_URL", "u:pw@h", "***");
}

static void what_is_shown_fits_in_one_line(void **state UNUSED)
{
    shows("RECLAIM_WORKERS", "a\nb\x1b[31m\xff", "a?b?[31m?");
    shows("RECLAIM_WORKERS", "grün", "grün");
    char longest[300];
    memset(longest, 'x', sizeof longest);
    longest[299] = '\0';
    AUTO(buf) struct buf out = buf_new(4096);
    setting_show(row("RECLAIM_WORKERS"), str_of(longest), &out);
    assert_in_range(buf_str(&out).len, 90, 110);
}

static void no_input_is_read_past_its_end(void **state UNUSED)
{
    /* Each prefix of something good, in memory of its exact size: the address sanitizer watches. */
    static const char *const texts[] = {"https://app.example.com:443,http://[::1]:80",
                                        "a.b,tenants.people.id",
                                        "10.0.0.0/8,[2001:db8::]/32",
                                        "[2001:db8::1]:8080",
                                        "7d,1d",
                                        "1000/3600",
                                        "postgresql://u:p%40w@[::1]:5432,h/db?sslmode=off"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        for (size_t len = 0; len <= strlen(texts[i]); len++) {
            char *exact = malloc(len + 1);
            assert_non_null(exact);
            memcpy(exact, texts[i], len);
            exact[len] = '\0';
            for (size_t r = 0; r < settings_count; r++) {
                AUTO(arena) struct arena *arena = arena_new(256, 65536);
                AUTO(buf) struct buf out = buf_new(4096);
                union field field;
                struct str text = {exact, len}, wrong = text;
                (void)!settings_rows[r].type->parse(&settings_rows[r], text, arena, &field, &wrong);
                setting_show(&settings_rows[r], text, &out);
            }
            free(exact);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_keep_to_their_bounds),
        cmocka_unit_test(choices_are_the_words_and_nothing_else),
        cmocka_unit_test(durations_need_a_unit_and_keep_to_their_bounds),
        cmocka_unit_test(limits_are_requests_and_seconds_or_off),
        cmocka_unit_test(listen_addresses_are_numeric_with_a_port),
        cmocka_unit_test(networks_have_no_bits_behind_their_prefix),
        cmocka_unit_test(a_list_has_a_ceiling),
        cmocka_unit_test(origins_take_the_form_that_browsers_send),
        cmocka_unit_test(ownership_names_are_plain_identifiers),
        cmocka_unit_test(a_condition_on_ownership_is_complete_in_itself),
        cmocka_unit_test(database_addresses_are_what_libpq_reads),
        cmocka_unit_test(secrets_have_a_length),
        cmocka_unit_test(what_is_shown_holds_no_password),
        cmocka_unit_test(what_is_shown_fits_in_one_line),
        cmocka_unit_test(no_input_is_read_past_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
