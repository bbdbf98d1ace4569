#include "settings/settings.h"

#include <sched.h>

#include "room.h"
#include "settings/table.h"

static void set(const char *name, const char *value)
{
    assert_int_equal(setenv(name, value, 1), 0);
}

static struct settings *loaded(const char *config_file)
{
    struct settings *s = NULL;
    struct why why = {""};
    if (settings_load(config_file, &s, &why))
        fail_msg("refused: %s", why.text);
    return s;
}

static void refused(const char *config_file, const char *sentence)
{
    struct settings *s = NULL;
    struct why why = {""};
    assert_int_not_equal(settings_load(config_file, &s, &why), OK);
    assert_null(s);
    assert_string_equal(why.text, sentence);
}

static struct settings *loaded_from(const char *ini)
{
    return loaded(write_file("reclaim.ini", ini, 0600));
}

/* Only the end of the sentence, since it begins with the folder's name. */
static void refused_from(const char *ini, const char *ending)
{
    struct settings *s = NULL;
    struct why why = {""};
    assert_int_not_equal(settings_load(write_file("reclaim.ini", ini, 0600), &s, &why), OK);
    size_t len = strlen(why.text), end = strlen(ending);
    if (len < end || strcmp(why.text + len - end, ending) != 0)
        fail_msg("\"%s\" does not end with \"%s\"", why.text, ending);
}

static bool warned(const struct settings *s, const char *words)
{
    for (size_t i = 0; i < s->warnings.count; i++)
        if (strstr(s->warnings.at[i], words))
            return true;
    return false;
}

static void without_any_setting_the_defaults_hold(void **state UNUSED)
{
    AUTO(settings) struct settings *s = loaded(NULL);
    assert_null(s->database_url);
    assert_null(s->database_direct_url);
    assert_int_equal(s->prepare, PG_PREPARE_AUTO);
    assert_int_equal(s->database_connections, 16);
    assert_true(s->migrate);
    assert_int_equal(s->ownership.count, 2);
    assert_string_equal(s->ownership.at[1].table, "company_admins");
    assert_string_equal(s->listen, "127.0.0.1:8080");
    assert_string_equal(s->ops_listen, "127.0.0.1:8081");
    cpu_set_t cores;
    assert_int_equal(sched_getaffinity(0, sizeof cores, &cores), 0);
    assert_int_equal(s->workers, CPU_COUNT(&cores) > 64 ? 64 : CPU_COUNT(&cores));
    assert_int_equal(s->max_connections, 12000);
    assert_int_equal(s->trusted_proxies.count, 0);
    assert_string_equal(s->cors_origins.at[0], "*");
    assert_int_equal(s->drain_ms, 30000);
    assert_int_equal(s->contract, CONTRACT_CLEANUP_V1);
    assert_int_equal(s->probe_hold_ms, 150);
    assert_int_equal(s->probe_hold_sigma_ms, 10);
    assert_int_equal(s->probe_timeout_ms, 100);
    assert_string_equal(s->data_dir, "./reclaim-data");
    assert_null(s->secret_key);
    assert_int_equal(s->log_level, LOG_INFO);
    assert_int_equal(s->warnings.count, 0);
}

static void every_setting_can_come_from_the_environment(void **state UNUSED)
{
    set("RECLAIM_DATABASE_URL", "postgres://h:6432/db");
    set("RECLAIM_DATABASE_DIRECT_URL", "postgres://h/db");
    set("RECLAIM_PREPARE", "off");
    set("RECLAIM_DATABASE_CONNECTIONS", "32");
    set("RECLAIM_MIGRATE", "off");
    set("RECLAIM_OWNERSHIP", "tenants.people.id");
    set("RECLAIM_LISTEN", "[::1]:80");
    set("RECLAIM_OPS_LISTEN", "127.0.0.1:0");
    set("RECLAIM_WORKERS", "3");
    set("RECLAIM_MAX_CONNECTIONS", "100");
    set("RECLAIM_TRUSTED_PROXIES", "10.0.0.0/8");
    set("RECLAIM_CORS_ORIGINS", "https://app.example.com");
    set("RECLAIM_DRAIN", "5s");
    set("RECLAIM_CONTRACT", "registration-recovery");
    set("RECLAIM_PROBE_HOLD_MS", "200");
    set("RECLAIM_PROBE_HOLD_SIGMA_MS", "0");
    set("RECLAIM_PROBE_TIMEOUT_MS", "50");
    set("RECLAIM_DATA_DIR", "/somewhere");
    set("RECLAIM_SECRET_KEY", "0123456789012345678901234567890123");
    set("RECLAIM_LOG_LEVEL", "debug");
    AUTO(settings) struct settings *s = loaded(NULL);
    assert_string_equal(s->database_url, "postgres://h:6432/db");
    assert_string_equal(s->database_direct_url, "postgres://h/db");
    assert_int_equal(s->prepare, PG_PREPARE_OFF);
    assert_int_equal(s->database_connections, 32);
    assert_false(s->migrate);
    assert_string_equal(s->ownership.at[0].schema, "tenants");
    assert_string_equal(s->listen, "[::1]:80");
    assert_string_equal(s->ops_listen, "127.0.0.1:0");
    assert_int_equal(s->workers, 3);
    assert_int_equal(s->max_connections, 100);
    assert_int_equal(s->trusted_proxies.count, 1);
    assert_string_equal(s->cors_origins.at[0], "https://app.example.com");
    assert_int_equal(s->drain_ms, 5000);
    assert_int_equal(s->contract, CONTRACT_REGISTRATION_RECOVERY);
    assert_int_equal(s->probe_hold_ms, 200);
    assert_int_equal(s->probe_hold_sigma_ms, 0);
    assert_int_equal(s->probe_timeout_ms, 50);
    assert_string_equal(s->data_dir, "/somewhere");
    assert_string_equal(s->secret_key, "0123456789012345678901234567890123");
    assert_int_equal(s->log_level, LOG_DEBUG);
    assert_int_equal(s->warnings.count, 0);
}

static void a_wrong_value_is_named_with_what_was_expected(void **state UNUSED)
{
    static const struct {
        const char *name, *value, *sentence;
    } cases[] = {
        {"RECLAIM_WORKERS", "many", "RECLAIM_WORKERS: \"many\" is not a whole number from 1 to 64"},
        {"RECLAIM_PREPARE", "yes", "RECLAIM_PREPARE: \"yes\" is not auto, on or off"},
        {"RECLAIM_MIGRATE", "1", "RECLAIM_MIGRATE: \"1\" is not on or off"},
        {"RECLAIM_PROBE_HOLD_MS", "1s",
         "RECLAIM_PROBE_HOLD_MS: \"1s\" is not a whole number of milliseconds from 0 to 60000"},
        {"RECLAIM_DRAIN", "30",
         "RECLAIM_DRAIN: \"30\" is not a duration from 0 to 10m with its unit: ms, s, m, h or d"},
        {"RECLAIM_LISTEN", "8080",
         "RECLAIM_LISTEN: \"8080\" is not an address and port such as 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080"},
        {"RECLAIM_TRUSTED_PROXIES", "::1, 10.0.0.1/8",
         "RECLAIM_TRUSTED_PROXIES: \"10.0.0.1/8\" is not a network such as 10.0.0.0/8, 192.0.2.7 or 2001:db8::/32 (up "
         "to "
         "64, separated by commas), or none"},
        {"RECLAIM_CORS_ORIGINS", "app.example.com",
         "RECLAIM_CORS_ORIGINS: \"app.example.com\" is not an origin such as https://app.example.com (up to 64, "
         "separated by commas), * for every one, or none"},
        {"RECLAIM_OWNERSHIP", "companies",
         "RECLAIM_OWNERSHIP: \"companies\" is not a column such as companies.owner_admin_uuid or "
         "public.companies.owner_admin_uuid, or one with a condition, such as profiles.id where onboarded_at is not "
         "null: without a semicolon, comment, parameter, backslash or sub-select (up to 8, separated by commas)"},
        {"RECLAIM_DATABASE_URL", "mysql://u:hidden@h/db",
         "RECLAIM_DATABASE_URL: \"mysql://***@h/db\" is not a PostgreSQL URL such as "
         "postgresql://user:password@host:5432/database (in the password, / is written %2F and @ %40), or key=value "
         "pairs as libpq reads them"},
        {"RECLAIM_SECRET_KEY", "hidden",
         "RECLAIM_SECRET_KEY: its value (not shown) is not a secret of 32 to 512 characters"},
        {"RECLAIM_DATA_DIR", "a\nb",
         "RECLAIM_DATA_DIR: \"a?b\" is not text of 1 to 1024 bytes without control characters"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        set(cases[i].name, cases[i].value);
        refused(NULL, cases[i].sentence);
        unsetenv(cases[i].name);
    }
}

static void an_empty_value_counts_as_unset(void **state UNUSED)
{
    set("RECLAIM_WORKERS", "");
    set("RECLAIM_DATABASE_URL", "");
    set("RECLAIM_DRAIN_FILE", "");
    set("RECLAIM_DRAIN", "3s");
    AUTO(settings) struct settings *s = loaded_from("RECLAIM_WORKERS = 5\nRECLAIM_PREPARE =\n");
    assert_int_equal(s->workers, 5);
    assert_null(s->database_url);
    assert_int_equal(s->drain_ms, 3000);
    assert_int_equal(s->prepare, PG_PREPARE_AUTO);
}

static void the_file_is_read_in_any_section_and_the_environment_wins(void **state UNUSED)
{
    set("RECLAIM_DRAIN", "7s");
    AUTO(settings)
    struct settings *s = loaded_from("\xef\xbb\xbf; comment\n"
                                     "RECLAIM_WORKERS=5\r\n"
                                     "\tRECLAIM_PROBE_HOLD_MS = 120\n" /* no continuation */
                                     "\n"
                                     "[http]\n"
                                     "# comment\n"
                                     "  RECLAIM_LISTEN  =  [::1]:9000  \n"
                                     "RECLAIM_DRAIN = 9s\n"
                                     "[database]\n"
                                     "RECLAIM_DATABASE_URL = host=h dbname='a ;b'");
    assert_int_equal(s->workers, 5);
    assert_int_equal(s->probe_hold_ms, 120);
    assert_string_equal(s->listen, "[::1]:9000");
    assert_int_equal(s->drain_ms, 7000);
    assert_string_equal(s->database_url, "host=h dbname='a ;b'");
    assert_string_equal(s->database_direct_url, s->database_url);
    assert_int_equal(s->warnings.count, 0);
}

static void a_bad_file_is_refused_with_its_line(void **state UNUSED)
{
    refused_from("\nRECLAIM_WORKERS = many\n", "reclaim.ini, line 2)");
    refused_from("RECLAIM_WORKERS = 1\n[x]\nRECLAIM_WORKERS = 1\n",
                 "reclaim.ini, line 3: RECLAIM_WORKERS is set twice; give it, or RECLAIM_WORKERS_FILE, once");
    refused_from("RECLAIM_WORKERS = 1\nnonsense\nRECLAIM_DRAIN = 1s\n",
                 "reclaim.ini, line 2: expected NAME = value, a [section] or a comment that begins with ; or #");
    refused_from("[unfinished\n",
                 "reclaim.ini, line 1: expected NAME = value, a [section] or a comment that begins with ; or #");
    refused_from("RECLAIM_DATA_DIR = \"/srv/x\"\n", "reclaim.ini, line 1: values are written without quotes");
    refused_from("RECLAIM_WORKERS = 4 ; four\n", "reclaim.ini, line 1)");
}

static void a_file_that_cannot_be_read_is_refused(void **state UNUSED)
{
    struct settings *s = NULL;
    struct why why = {""};
    assert_int_not_equal(settings_load(in_room("nothing.ini"), &s, &why), OK);
    assert_non_null(strstr(why.text, "cannot read the configuration file"));
    assert_non_null(strstr(why.text, "No such file"));
    assert_int_not_equal(settings_load(room, &s, &why), OK);
    assert_non_null(strstr(why.text, "cannot read the configuration file"));
}

/* inih's own buffer is 200 bytes, and it would take the rest of a line for another one. */
static void long_lines_are_read_whole_or_refused(void **state UNUSED)
{
    static char ini[20000];
    char path[1001];
    memset(path, 'p', sizeof path - 1);
    path[1000] = '\0';
    snprintf(ini, sizeof ini, "RECLAIM_DATA_DIR = %s\nRECLAIM_WORKERS = 2\n", path);
    AUTO(settings) struct settings *s = loaded_from(ini);
    assert_string_equal(s->data_dir, path);
    assert_int_equal(s->workers, 2);

    memset(ini, 'x', 18000);
    ini[snprintf(ini, 100, "RECLAIM_DATA_DIR = ")] = 'x';
    snprintf(ini + 17000, 100, "\nRECLAIM_WORKERS = 2\n");
    refused_from(ini, "reclaim.ini, line 1: is too long");
    FILE *file = fopen(in_room("nul.ini"), "we");
    assert_non_null(file);
    fwrite("RECLAIM_WORKERS = 2\0 3\n", 1, 23, file);
    fclose(file);
    struct settings *none = NULL;
    struct why why;
    assert_int_not_equal(settings_load(in_room("nul.ini"), &none, &why), OK);
    assert_non_null(strstr(why.text, "nul.ini, line 1: holds a NUL byte"));
}

static void unknown_names_are_warned_about_with_the_nearest(void **state UNUSED)
{
    set("RECLAIM_WORKER", "3");
    set("RECLAIM_SECRT_KEY_FILE", "/nowhere");
    set("RECLAIM_NOTHING_LIKE_IT_AT_ALL", "x");
    set("RECLAIM_TEST_ANYTHING", "x");
    set("RECLAIMED", "x");
    AUTO(settings) struct settings *s = loaded_from("workers = 4\n[x]\nRECLAIM_LOGLEVEL = debug\nRECLAIM_TEST_X = 1\n");
    assert_true(warned(s, "RECLAIM_WORKER is no setting of Reclaim; did you mean RECLAIM_WORKERS?"));
    assert_true(warned(s, "RECLAIM_SECRT_KEY_FILE is no setting of Reclaim; did you mean RECLAIM_SECRET_KEY_FILE?"));
    assert_true(warned(s, "reclaim.ini, line 1: workers is no setting of Reclaim; did you mean RECLAIM_WORKERS?"));
    assert_true(warned(s, "line 3: RECLAIM_LOGLEVEL is no setting of Reclaim; did you mean RECLAIM_LOG_LEVEL?"));
    assert_true(warned(s, "RECLAIM_NOTHING_LIKE_IT_AT_ALL is no setting of Reclaim"));
    assert_false(warned(s, "AT_ALL is no setting of Reclaim;"));
    assert_int_equal(s->warnings.count, 5);
}

static void a_flood_of_unknown_names_is_bounded(void **state UNUSED)
{
    for (int i = 0; i < 100; i++) {
        char name[200];
        snprintf(name, sizeof name, "RECLAIM_%0150d", i);
        set(name, "x");
    }
    AUTO(settings) struct settings *s = loaded(NULL);
    assert_in_range(s->warnings.count, 1, 32);
}

static void a_value_can_be_read_from_a_file(void **state UNUSED)
{
    set("RECLAIM_SECRET_KEY_FILE", write_file("key", "0123456789012345678901234567890123\n", 0600));
    char ini[400];
    snprintf(ini, sizeof ini, "RECLAIM_DATABASE_URL_FILE = %s\n", write_file("url", "postgres://u:pw@h/db\r\n", 0640));
    AUTO(settings) struct settings *s = loaded_from(ini);
    assert_string_equal(s->secret_key, "0123456789012345678901234567890123");
    assert_string_equal(s->database_url, "postgres://u:pw@h/db");
    assert_int_equal(s->warnings.count, 0);
}

static void the_value_and_its_file_are_not_both_given(void **state UNUSED)
{
    set("RECLAIM_WORKERS", "2");
    set("RECLAIM_WORKERS_FILE", write_file("workers", "3", 0600));
    refused(NULL, "RECLAIM_WORKERS is set twice; give it, or RECLAIM_WORKERS_FILE, once");
    unsetenv("RECLAIM_WORKERS_FILE");
    /* In different places the environment wins, and the file need not even exist. */
    AUTO(settings) struct settings *s = loaded_from("RECLAIM_WORKERS_FILE = /nowhere/at/all\n");
    assert_int_equal(s->workers, 2);
}

static void a_value_file_that_will_not_do_is_refused(void **state UNUSED)
{
    struct settings *s = NULL;
    struct why why;
    static char huge[9000];
    memset(huge, 'x', sizeof huge - 1);
    const struct {
        const char *path, *words;
    } cases[] = {
        {in_room("missing"), "No such file or directory"},
        {write_file("empty", "\n", 0600), "is empty"},
        {write_file("huge", huge, 0600), "is longer than 8192 bytes"},
        {write_file("short", "hidden\n", 0600), "its value (not shown) is not a secret of 32 to 512 characters"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        set("RECLAIM_SECRET_KEY_FILE", cases[i].path);
        assert_int_not_equal(settings_load(NULL, &s, &why), OK);
        assert_non_null(strstr(why.text, cases[i].words));
        assert_non_null(strstr(why.text, "RECLAIM_SECRET_KEY"));
        assert_non_null(strstr(why.text, cases[i].path));
        assert_null(strstr(why.text, "hidden"));
    }
}

static void secrets_that_everyone_can_read_draw_a_warning(void **state UNUSED)
{
    set("RECLAIM_SECRET_KEY_FILE", write_file("key", "0123456789012345678901234567890123\n", 0644));
    set("RECLAIM_WORKERS_FILE", write_file("workers", "2\n", 0644));
    AUTO(settings) struct settings *s = loaded(NULL);
    assert_true(warned(s, "RECLAIM_SECRET_KEY: "));
    assert_true(warned(s, "can be read by every user of this machine; chmod o-r it"));
    assert_int_equal(s->warnings.count, 1);
    unsetenv("RECLAIM_SECRET_KEY_FILE");

    AUTO(settings)
    struct settings *open = loaded(write_file("a.ini", "RECLAIM_DATABASE_URL = postgres://u:pw@h/db\n", 0644));
    assert_true(warned(open, "RECLAIM_DATABASE_URL: "));
    AUTO(settings)
    struct settings *fine = loaded(write_file("b.ini", "RECLAIM_DATABASE_URL = postgres://u@h/db\n", 0644));
    assert_int_equal(fine->warnings.count, 0);
}

static void settings_that_contradict_each_other_are_refused(void **state UNUSED)
{
    set("RECLAIM_DATABASE_DIRECT_URL", "postgres://h/db");
    refused(NULL, "RECLAIM_DATABASE_DIRECT_URL is set without RECLAIM_DATABASE_URL: set both, or neither for the "
                  "private cluster");
    unsetenv("RECLAIM_DATABASE_DIRECT_URL");

    set("RECLAIM_OPS_LISTEN", "127.0.0.1:8080");
    refused(NULL, "RECLAIM_OPS_LISTEN: \"127.0.0.1:8080\" is not another address than RECLAIM_LISTEN's");
    set("RECLAIM_OPS_LISTEN", "127.0.0.1:0");
    set("RECLAIM_LISTEN", "127.0.0.1:0");
    settings_free(loaded(NULL));

    set("RECLAIM_PROBE_HOLD_SIGMA_MS", "76");
    refused(NULL,
            "RECLAIM_PROBE_HOLD_SIGMA_MS: \"76\" is not at most half of RECLAIM_PROBE_HOLD_MS (150), since the jitter "
            "is cut at twice this value");
    set("RECLAIM_PROBE_HOLD_SIGMA_MS", "75");
    settings_free(loaded(NULL));
    set("RECLAIM_PROBE_HOLD_MS", "0"); /* off, whatever the jitter */
    settings_free(loaded(NULL));
    unsetenv("RECLAIM_PROBE_HOLD_SIGMA_MS");
    set("RECLAIM_PROBE_HOLD_MS", "5"); /* jitter that nobody asked for gives way */
    AUTO(settings) struct settings *small = loaded(NULL);
    assert_int_equal(small->probe_hold_sigma_ms, 2);

    set("RECLAIM_PROBE_HOLD_MS", "150");
    set("RECLAIM_PROBE_TIMEOUT_MS", "150");
    AUTO(settings) struct settings *s = loaded(NULL);
    assert_true(warned(s, "RECLAIM_PROBE_TIMEOUT_MS (150) is not below RECLAIM_PROBE_HOLD_MS (150)"));
}

static void a_reload_changes_what_can_change_and_keeps_the_rest(void **state UNUSED)
{
    set("RECLAIM_DRAIN", "5s");
    AUTO(settings)
    struct settings *old = loaded_from("RECLAIM_LISTEN = 127.0.0.1:9000\n"
                                       "RECLAIM_PROBE_HOLD_MS = 100\n"
                                       "RECLAIM_DRAIN = 6s\n"
                                       "RECLAIM_DATABASE_URL = postgres://u:old@h/db\n");
    write_file("reclaim.ini",
               "RECLAIM_LISTEN = 127.0.0.1:9999\n"
               "RECLAIM_PROBE_HOLD_MS = 120\n"
               "RECLAIM_LOG_LEVEL = debug\n"
               "RECLAIM_WORKERS = 7\n"
               "RECLAIM_DRAIN = 8s\n"
               "RECLAIM_PREPARE = auto\n",
               0600);
    AUTO(settings) struct settings *s = NULL;
    struct why why;
    assert_int_equal(settings_reload(old, &s, &why), OK);
    assert_int_equal(s->probe_hold_ms, 120);
    assert_int_equal(s->log_level, LOG_DEBUG);
    assert_int_equal(s->drain_ms, 5000);
    assert_string_equal(s->listen, "127.0.0.1:9000");
    assert_int_equal(s->workers, old->workers);
    assert_string_equal(s->database_url, "postgres://u:old@h/db");
    assert_true(warned(s, "RECLAIM_LISTEN has changed; the new value is used after a restart"));
    assert_true(warned(s, "RECLAIM_WORKERS has changed"));
    assert_true(warned(s, "RECLAIM_DATABASE_URL has changed"));
    assert_int_equal(s->warnings.count, 3);
    assert_int_equal(old->probe_hold_ms, 100);

    /* The next one is compared with what is in force, not with what the file said last. */
    AUTO(settings) struct settings *again = NULL;
    assert_int_equal(settings_reload(s, &again, &why), OK);
    assert_string_equal(again->listen, "127.0.0.1:9000");
    assert_true(warned(again, "RECLAIM_LISTEN has changed"));
}

static void a_reload_of_wrong_settings_changes_nothing(void **state UNUSED)
{
    AUTO(settings) struct settings *old = loaded_from("RECLAIM_PROBE_HOLD_MS = 100\n");
    write_file("reclaim.ini", "RECLAIM_PROBE_HOLD_MS = much\n", 0600);
    struct settings *s = NULL;
    struct why why;
    assert_int_equal(settings_reload(old, &s, &why), ERR_INPUT);
    assert_null(s);
    assert_non_null(strstr(why.text, "RECLAIM_PROBE_HOLD_MS: \"much\""));
    assert_int_equal(old->probe_hold_ms, 100);
}

static char *printed(void (*print)(FILE *))
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    print(out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void the_help_names_every_setting(void **state UNUSED)
{
    char *help = printed(settings_print_help);
    for (size_t i = 0; i < settings_count; i++) {
        char line[128];
        snprintf(line, sizeof line, "\n  %s\n", settings_rows[i].name);
        assert_non_null(strstr(help, line));
    }
    for (const char *line = help; *line; line += strcspn(line, "\n") + 1)
        assert_in_range(strcspn(line, "\n"), 0, 110);
    assert_null(strchr(help, '`'));
    free(help);
}

static void every_row_is_complete(void **state UNUSED)
{
    for (size_t i = 0; i < settings_count; i++) {
        const struct setting *row = &settings_rows[i];
        assert_true(strncmp(row->name, "RECLAIM_", 8) == 0 && strlen(row->name) <= 48);
        assert_true(row->group && row->type && row->help);
        assert_true(row->standard || row->standard_words);
        assert_int_equal(row->help[strlen(row->help) - 1], '.');
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(row->name, settings_rows[j].name);
    }
}

/* The repository's copy must say what the program says; RECLAIM_TEST_UPDATE=1 writes it anew. */
static void same_as_file(void (*print)(FILE *), const char *path)
{
    if (getenv("RECLAIM_TEST_UPDATE")) {
        FILE *file = fopen(path, "we");
        assert_non_null(file);
        print(file);
        assert_int_equal(fclose(file), 0);
    }
    char *now = printed(print), *kept = calloc(1, 65536);
    FILE *file = fopen(path, "re");
    if (!file || !kept)
        fail_msg("%s is missing: run this test with RECLAIM_TEST_UPDATE=1", path);
    kept[fread(kept, 1, 65535, file)] = '\0';
    fclose(file);
    if (strcmp(now, kept) != 0)
        fail_msg("%s is out of date: run this test with RECLAIM_TEST_UPDATE=1", path);
    free(now);
    free(kept);
}

static void the_documentation_says_what_the_program_says(void **state UNUSED)
{
    same_as_file(settings_print_markdown, SOURCE_ROOT "/docs/settings.md");
    same_as_file(settings_print_ini, SOURCE_ROOT "/deploy/reclaim.ini.example");
}

static void the_example_file_holds_the_defaults(void **state UNUSED)
{
    char *example = printed(settings_print_ini);
    AUTO(settings) struct settings *commented = loaded_from(example);
    assert_int_equal(commented->warnings.count, 0);
    for (char *at = example; (at = strstr(at, "\n;RECLAIM_"));)
        memmove(at + 1, at + 2, strlen(at + 1));
    AUTO(settings) struct settings *s = loaded_from(example);
    assert_int_equal(s->warnings.count, 0);
    for (size_t i = 0; i < settings_count; i++) {
        assert_non_null(strstr(example, settings_rows[i].name));
        if (settings_rows[i].standard)
            assert_int_equal(s->origin->given[i].by, GIVEN_BY_FILE);
        if (s->origin->given[i].text)
            assert_string_equal(s->origin->given[i].text, commented->origin->given[i].text);
    }
    free(example);
}

static void the_mailbox_is_a_demonstrations_and_shown_on_this_machine_only(void **state UNUSED)
{
    const struct {
        const char *listen;
        bool shown;
    } cases[] = {
        {"127.0.0.1:8080", true},  {"127.66.77.88:0", true}, {"[::1]:8080", true},        {"0.0.0.0:8080", false},
        {"192.0.2.1:8080", false}, {"[::]:8080", false},     {"[2001:db8::1]:80", false}, {"128.0.0.1:8080", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        set("RECLAIM_LISTEN", cases[i].listen);
        AUTO(settings) struct settings *s = loaded(NULL);
        assert_true(settings_has_mailbox(s, true));
        assert_int_equal(settings_shows_mailbox(s, true), cases[i].shown);
        assert_false(settings_has_mailbox(s, false));
        assert_false(settings_shows_mailbox(s, false));
    }
    unsetenv("RECLAIM_LISTEN");
    AUTO(settings)
    struct settings *s =
        loaded_from("RECLAIM_SMTP_URL = smtps://mail.example.com\nRECLAIM_MAIL_FROM = reclaim@example.com\n");
    assert_false(settings_has_mailbox(s, true));
    assert_false(settings_shows_mailbox(s, true));
}

static void add_shown(void *context, const struct setting_shown *setting)
{
    buf_addf(context, "%s=%.*s (%s)\n", setting->name, (int)setting->value.len,
             setting->value.at ? setting->value.at : "", setting->source);
}

static void current_values_are_shown_without_secrets(void **state UNUSED)
{
    set("RECLAIM_SECRET_KEY", "hidden-hidden-hidden-hidden-hidden");
    AUTO(settings) struct settings *s = loaded_from("RECLAIM_DATABASE_URL = postgres://u:hidden@h/db\n");
    AUTO(buf) struct buf shown = buf_new(65536);
    settings_each(s, add_shown, &shown);
    const char *text = buf_str(&shown).at;
    assert_non_null(text);
    assert_null(strstr(text, "hidden"));
    assert_non_null(strstr(text, "RECLAIM_SECRET_KEY=*** (environment)\n"));
    assert_non_null(strstr(text, "RECLAIM_DATABASE_URL=user=u password=*** dbname=db host=h (file)\n"));
    assert_non_null(strstr(text, "RECLAIM_DRAIN=30s (default)\n"));
    assert_non_null(strstr(text, "RECLAIM_DATABASE_DIRECT_URL= (default)\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_ROOM(without_any_setting_the_defaults_hold),
        IN_ROOM(every_setting_can_come_from_the_environment),
        IN_ROOM(a_wrong_value_is_named_with_what_was_expected),
        IN_ROOM(an_empty_value_counts_as_unset),
        IN_ROOM(the_file_is_read_in_any_section_and_the_environment_wins),
        IN_ROOM(a_bad_file_is_refused_with_its_line),
        IN_ROOM(a_file_that_cannot_be_read_is_refused),
        IN_ROOM(long_lines_are_read_whole_or_refused),
        IN_ROOM(unknown_names_are_warned_about_with_the_nearest),
        IN_ROOM(a_flood_of_unknown_names_is_bounded),
        IN_ROOM(a_value_can_be_read_from_a_file),
        IN_ROOM(the_value_and_its_file_are_not_both_given),
        IN_ROOM(a_value_file_that_will_not_do_is_refused),
        IN_ROOM(secrets_that_everyone_can_read_draw_a_warning),
        IN_ROOM(settings_that_contradict_each_other_are_refused),
        IN_ROOM(a_reload_changes_what_can_change_and_keeps_the_rest),
        IN_ROOM(a_reload_of_wrong_settings_changes_nothing),
        IN_ROOM(the_help_names_every_setting),
        IN_ROOM(every_row_is_complete),
        IN_ROOM(the_documentation_says_what_the_program_says),
        IN_ROOM(the_example_file_holds_the_defaults),
        IN_ROOM(the_mailbox_is_a_demonstrations_and_shown_on_this_machine_only),
        IN_ROOM(current_values_are_shown_without_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
