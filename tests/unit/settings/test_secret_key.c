#include <dirent.h>
#include <sys/wait.h>

#include "base/digest.h"
#include "room.h"
#include "settings/settings.h"

/* Settings with nothing but what the key depends on. */
static struct settings with(const char *data_dir, const char *database_url, const char *secret_key)
{
    return (struct settings){.data_dir = data_dir, .database_url = database_url, .secret_key = secret_key};
}

static bool is_url_safe(const char *key)
{
    return strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(key);
}

static int files_in(const char *path)
{
    int count = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2;
}

static void the_given_key_is_used(void **state UNUSED)
{
    struct settings s = with(in_room("data"), "postgres://h/db", "0123456789012345678901234567890123");
    char key[SECRET_KEY_MAX + 1];
    struct why why;
    assert_int_equal(settings_secret_key(&s, true, key, &why), OK);
    assert_string_equal(key, s.secret_key);
    assert_int_not_equal(access(s.data_dir, F_OK), 0);
}

static void with_the_private_cluster_a_key_is_made_once_and_kept(void **state UNUSED)
{
    struct settings s = with(in_room("deep/er/data"), NULL, NULL);
    char key[SECRET_KEY_MAX + 1], again[SECRET_KEY_MAX + 1];
    struct why why;
    assert_int_equal(settings_secret_key(&s, true, key, &why), OK);
    assert_int_equal(strlen(key), 43);
    assert_true(is_url_safe(key));
    assert_int_equal(settings_secret_key(&s, true, again, &why), OK);
    assert_string_equal(key, again);

    struct stat st;
    assert_int_equal(stat(in_room("deep/er/data/secret-key"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, 44);
    assert_int_equal(files_in(s.data_dir), 1);

    struct settings other = with(in_room("other"), NULL, NULL);
    assert_int_equal(settings_secret_key(&other, true, again, &why), OK);
    assert_string_not_equal(key, again);
}

static void an_external_database_needs_a_key_of_its_operator(void **state UNUSED)
{
    struct settings s = with(in_room("data"), "postgres://h/db", NULL);
    char key[SECRET_KEY_MAX + 1];
    struct why why;
    assert_int_equal(settings_secret_key(&s, true, key, &why), ERR_MISSING);
    assert_non_null(strstr(why.text, "RECLAIM_SECRET_KEY is not set"));
    assert_non_null(strstr(why.text, "openssl rand -base64 32"));
    assert_int_not_equal(access(s.data_dir, F_OK), 0);
}

static void many_starts_at_once_agree_on_one_key(void **state UNUSED)
{
    enum { STARTS = 12 };
    struct settings s = with(in_room("data"), NULL, NULL);
    int gate[2], keys[2];
    assert_int_equal(pipe(gate), 0);
    assert_int_equal(pipe(keys), 0);
    pid_t children[STARTS];
    for (int i = 0; i < STARTS; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            char key[SECRET_KEY_MAX + 1], go;
            struct why why;
            close(gate[1]);
            bool fine = read(gate[0], &go, 1) == 0 && settings_secret_key(&s, true, key, &why) == OK &&
                        write(keys[1], key, 43) == 43;
            _exit(fine ? 0 : 1);
        }
    }
    close(gate[0]);
    close(gate[1]); /* all at once */
    char first[44] = "", next[44] = "";
    for (int i = 0; i < STARTS; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
        assert_int_equal(read(keys[0], next, 43), 43);
        if (i == 0)
            memcpy(first, next, sizeof first);
        assert_string_equal(first, next);
    }
    close(keys[0]);
    close(keys[1]);
    assert_int_equal(files_in(s.data_dir), 1);
}

static void a_key_file_that_will_not_do_is_refused(void **state UNUSED)
{
    struct settings s = with(room, NULL, NULL);
    char key[SECRET_KEY_MAX + 1];
    struct why why;
    static char longest[600];
    memset(longest, 'k', sizeof longest - 1);
    const struct {
        const char *text;
        mode_t mode;
        const char *words;
    } cases[] = {
        {"hidden\n", 0600, "does not hold a key of 32 to 512 characters"},
        {"", 0600, "does not hold a key"},
        {longest, 0600, "does not hold a key"},
        {"0123456789012345678901234567890123\n", 0644, "is open to every user of this machine; chmod 600 it"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *path = write_file("secret-key", cases[i].text, cases[i].mode);
        assert_int_equal(settings_secret_key(&s, true, key, &why), ERR_INPUT);
        assert_non_null(strstr(why.text, cases[i].words));
        assert_non_null(strstr(why.text, path));
        assert_null(strstr(why.text, "hidden"));
    }
    write_file("secret-key", "made by hand: 0123456789012345678901", 0600);
    assert_int_equal(settings_secret_key(&s, true, key, &why), OK);
    assert_string_equal(key, "made by hand: 0123456789012345678901");
}

static void a_data_directory_that_cannot_be_made_is_named(void **state UNUSED)
{
    struct settings s = with(in_room("file/data"), NULL, NULL);
    write_file("file", "", 0600);
    char key[SECRET_KEY_MAX + 1];
    struct why why;
    assert_int_equal(settings_secret_key(&s, true, key, &why), ERR_SYSTEM);
    assert_non_null(strstr(why.text, "RECLAIM_DATA_DIR: "));
    assert_non_null(strstr(why.text, "Not a directory"));
}

static void made_by_root_the_key_belongs_to_the_owner_of_the_data(void **state UNUSED)
{
    if (geteuid() != 0)
        skip(); /* only root can give files away */
    struct settings s = with(in_room("data"), NULL, NULL);
    assert_int_equal(mkdir(s.data_dir, 0700), 0);
    assert_int_equal(chown(s.data_dir, 12345, 12345), 0);
    char key[SECRET_KEY_MAX + 1];
    struct why why;
    struct stat st;
    assert_int_equal(settings_secret_key(&s, true, key, &why), OK);
    assert_int_equal(stat(in_room("data/secret-key"), &st), 0);
    assert_int_equal(st.st_uid, 12345);
    assert_int_equal(st.st_mode & 07777, 0600);
}

static void a_command_that_needs_the_key_makes_none(void **state UNUSED)
{
    struct settings s = with(in_room("data"), NULL, NULL);
    char key[SECRET_KEY_MAX + 1], again[SECRET_KEY_MAX + 1];
    struct why why;
    assert_int_equal(settings_secret_key(&s, false, key, &why), ERR_MISSING);
    assert_non_null(strstr(why.text, "RECLAIM_SECRET_KEY is not set"));
    assert_non_null(strstr(why.text, s.data_dir));
    assert_int_not_equal(access(s.data_dir, F_OK), 0);
    assert_int_equal(settings_secret_key(&s, true, key, &why), OK);
    assert_int_equal(settings_secret_key(&s, false, again, &why), OK);
    assert_string_equal(key, again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_ROOM(the_given_key_is_used),
        IN_ROOM(with_the_private_cluster_a_key_is_made_once_and_kept),
        IN_ROOM(an_external_database_needs_a_key_of_its_operator),
        IN_ROOM(many_starts_at_once_agree_on_one_key),
        IN_ROOM(a_key_file_that_will_not_do_is_refused),
        IN_ROOM(a_data_directory_that_cannot_be_made_is_named),
        IN_ROOM(made_by_root_the_key_belongs_to_the_owner_of_the_data),
        IN_ROOM(a_command_that_needs_the_key_makes_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
