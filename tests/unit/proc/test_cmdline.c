/* tests/unit/proc/test_cmdline.c: what an interpreter runs, and command lines without secrets. */
#include "proc/cmdline.h"

#include <string.h>

#include "base/cleanup.h"
#include "child.h"

/* Arguments are separated by '|', which becomes a NUL; what is in memory ends in one, too. */
static struct view arguments(char *text)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i++)
		if (text[i] == '|')
			text[i] = 0;
	return view_of(text, n + 1);
}

#define PY "/usr/bin/python3.11"
#define NODE "/usr/bin/node"
#define JAVA "/usr/lib/jvm/java-17-openjdk-amd64/bin/java"

static const struct {
	const char *exe;
	const char *args;
	const char *cwd;
	const char *name; /* NULL: that of the executable */
} cases[] = {
	/* Python: scripts, */
	{PY, "python3|worker.py", "/srv/shop", "worker.py"},
	{PY, "python3|/srv/shop/tools/export.py|--all", "", "export.py"},
	{PY, "/usr/bin/python3|/usr/bin/gunicorn|shop:app", "/", "gunicorn"},
	{PY, "python3|-X|dev|-W|ignore|worker.py", "/", "worker.py"},
	{PY, "python3|-Xdev|-Wignore|-u|worker.py", "/", "worker.py"},
	{PY, "python3|-uW|ignore|worker.py", "/", "worker.py"},
	{PY, "python3|-OO|--|worker.py", "/", "worker.py"},
	{PY, "python3|--check-hash-based-pycs|never|worker.py", "/", "worker.py"},
	{PY, "exec-a-name|worker.py", "/", "worker.py"},
	{"", "/usr/bin/python3.11|worker.py", "/", "worker.py"},
	{"/opt/venv/bin/pypy3", "pypy3|worker.py", "/", "worker.py"},
	{"/usr/bin/python3.11-dbg", "python3|worker.py", "/", "worker.py"},
	/* modules, */
	{PY, "python3|-m|gunicorn|shop:app", "/", "gunicorn"},
	{PY, "python3|-um|uvicorn|app:main", "/", "uvicorn"},
	{PY, "python3|-muvicorn|app:main", "/", "uvicorn"},
	{PY, "python3|-m|http.server|8000", "/", "http.server"},
	{PY, "python3|-m|shop.__main__", "/", "shop"},
	{PY, "python3|-m|shop.main", "/", "shop"},
	/* nothing with a name, */
	{PY, "python3|-c|import this", "/", NULL},
	{PY, "python3|-Ic|import this", "/", NULL},
	{PY, "python3|-|x", "/", NULL},
	{PY, "python3", "/", NULL},
	{PY, "python3|-m", "/", NULL},
	{PY, "python3|-W", "/", NULL},
	{PY, "python3|", "/", NULL},
	/* and what a process calls itself. */
	{PY, "gunicorn: master [shop:app]", "/", "gunicorn"},
	{PY, "gunicorn: worker [shop:app]|||||", "/", "gunicorn"},
	{PY, "[celeryd: celery@host:MainProcess] -active- (worker)", "/", "celeryd"},
	/* Names that say little. */
	{PY, "python3|app.py", "/srv/shop", "shop"},
	{PY, "python3|./src/../app.py", "/srv/shop", "shop"},
	{PY, "python3|../app.py", "/srv/shop/src", "shop"},
	{PY, "python3|/srv/shop/app.py", "/", "shop"},
	{PY, "python3|/srv/shop/src/main.py", "/", "shop"},
	{PY, "python3|/srv/x/manage.py|runserver", "/", "x"},
	{PY, "python3|/srv/shop/releases/20240131120000/manage.py", "/", "shop"},
	{PY, "python3|/srv/shop/releases/2024-01-31T12:00:00Z/app.py", "/", "shop"},
	{PY, "python3|/srv/shop/current/bin/run.py", "/", "shop"},
	{PY, "python3|/opt/shop/v1.2.3/app.py", "/", "shop"},
	{PY, "python3|/home/alice/app.py", "/", "app.py"},
	{PY, "python3|/home/alice/shop/app.py", "/", "shop"},
	{PY, "python3|/app/main.py", "/", "main.py"},
	{PY, "python3|app.py", "", "app.py"},
	{PY, "python3|../../../app.py", "/srv", "app.py"},
	/* Node.js. */
	{NODE, "node|app.js", "/srv/shop", "shop"},
	{NODE, "node|worker.js", "/srv/shop", "worker.js"},
	{NODE, "node|--require|./tracing.js|--max-old-space-size=512|worker.js", "/", "worker.js"},
	{NODE, "node|-r|dotenv/config|worker.js", "/", "worker.js"},
	{NODE, "node|--import|tsx|/srv/shop/dist/index.js", "/", "shop"},
	{NODE, "/usr/bin/node|/srv/shop/bin/www", "/", "shop"},
	{NODE, "node|-e|1", "/", NULL},
	{NODE, "node|--eval|1", "/", NULL},
	{NODE, "node|-pe|1", "/", NULL},
	{NODE, "node|/srv/shop/node_modules/.bin/vite|dev", "/", "vite"},
	{NODE, "node|/srv/shop/node_modules/next/dist/bin/next|start", "/", "next"},
	{NODE, "node|/srv/shop/node_modules/@nestjs/cli/bin/nest.js", "/", "@nestjs/cli"},
	{NODE, "node|/usr/share/nodejs/npm/bin/npm-cli.js|run|x", "/", "npm"},
	{NODE, "node|/usr/share/nodejs/yarn/bin/yarn.js|serve", "/", "yarn"},
	{NODE, "node|/root/.cache/node/corepack/pnpm/8.1.0/bin/pnpm.cjs|dev", "/", "pnpm"},
	{NODE, "npm run serve", "/", "npm"},
	{NODE, "PM2 v5.3.0: God Daemon (/root/.pm2)", "/", "PM2"},
	{NODE, "next-server (v14.1.0)", "/", "next-server"},
	{"/usr/bin/node18", "node18|worker.js", "/", "worker.js"},
	{"/usr/bin/nodejs", "nodejs|worker.js", "/", "worker.js"},
	{"/usr/bin/node_exporter", "node_exporter|--x", "/", NULL},
	/* Java. */
	{JAVA, "java|-jar|shop.jar", "/", "shop"},
	{JAVA, "java|-Xmx1g|-Dx=y|-jar|/opt/shop-1.2.3-SNAPSHOT.jar|--port|1", "/", "shop"},
	{JAVA, "java|-jar|/opt/shop/app.jar", "/", "shop"},
	{JAVA, "java|-jar|app.jar", "/srv/shop", "shop"},
	{JAVA, "java|-cp|a.jar:b.jar|-Dx=y|kafka.Kafka|server.properties", "/", "Kafka"},
	{JAVA, "java|-classpath|a|com.acme.shop.Main", "/", "shop"},
	{JAVA, "java|--class-path|a|com.acme.Main", "/", "acme"},
	{JAVA, "java|org.apache.catalina.startup.Bootstrap|start", "/", "catalina"},
	{JAVA, "java|-cp|a|Main", "/", "Main"},
	{JAVA, "java|@/etc/shop/options|org.elasticsearch.bootstrap.Elasticsearch", "/",
	 "Elasticsearch"},
	{JAVA, "java|@/etc/shop/everything", "/", NULL},
	{JAVA, "java|--add-opens|java.base/java.lang=ALL-UNNAMED|a.b.Indexer", "/", "Indexer"},
	{JAVA, "java|-p|mods|--add-modules|x|-m|shop/com.acme.Seller", "/", "Seller"},
	{JAVA, "java|--module-path|mods|--module=shop/com.acme.shop.Main", "/", "shop"},
	{JAVA, "java|-p|mods|-m|shop", "/", "shop"},
	{JAVA, "java|/srv/Hello.java", "/", "Hello"},
	{JAVA, "java|-version", "/", NULL},
	{JAVA, "java|-jar", "/", NULL},
	/* Ruby, PHP, Perl. */
	{"/usr/bin/ruby3.1", "ruby|-I|lib|-rbundler|clock.rb", "/", "clock.rb"},
	{"/usr/bin/ruby3.1", "ruby|bin/rails|server", "/srv/shop", "shop"},
	{"/usr/bin/ruby3.1", "ruby|-e|sleep", "/", NULL},
	{"/usr/bin/ruby3.1", "puma 5.6.5 (tcp://0.0.0.0:3000) [shop]", "/", "puma"},
	{"/usr/bin/ruby3.1", "puma: cluster worker 0: 123 [shop]", "/", "puma"},
	{"/usr/bin/ruby3.1", "unicorn master -c config/unicorn.rb", "/", "unicorn"},
	{"/usr/bin/php8.2", "php|-d|memory_limit=1G|/srv/shop/artisan|queue:work", "/", "shop"},
	{"/usr/bin/php8.2", "php|-f|import.php", "/", "import.php"},
	{"/usr/bin/php8.2", "php|-S|0.0.0.0:80|-t|public", "/", NULL},
	{"/usr/bin/php8.2", "php|-r|echo 1;", "/", NULL},
	{"/usr/sbin/php-fpm8.2", "php-fpm: pool www", "/", "php-fpm"},
	{"/usr/sbin/php-fpm8.2", "/usr/sbin/php-fpm8.2|--nodaemonize", "/", "php-fpm"},
	{"/usr/bin/perl5.36.0", "perl|-w|-Ilib|-MFoo|x.pl", "/", "x.pl"},
	{"/usr/bin/perl", "perl|-I|lib|x.pl", "/", "x.pl"},
	{"/usr/bin/perl", "perl|-ne|print", "/", NULL},
	/* Shells. */
	{"/usr/bin/bash", "bash|deploy.sh", "/", "deploy.sh"},
	{"/usr/bin/bash", "bash|-euo|pipefail|deploy.sh", "/", "deploy.sh"},
	{"/usr/bin/bash", "/bin/bash|--norc|/usr/bin/ldd|x", "/", "ldd"},
	{"/usr/bin/bash", "bash|-c|sleep 1", "/", NULL},
	{"/usr/bin/bash", "bash|-ec|sleep 1", "/", NULL},
	{"/usr/bin/bash", "bash|/dev/fd/63", "/", NULL},
	{"/usr/bin/bash", "-bash", "/", NULL},
	{"/usr/bin/dash", "/bin/sh|/srv/shop/run.sh", "/", "shop"},
	{"/bin/busybox", "sh|deploy.sh", "/", "deploy.sh"},
	{"/bin/busybox", "/usr/sbin/httpd|-f", "/", "httpd"},
	{"/usr/bin/dotnet", "dotnet|Shop.dll", "/", "Shop"},
	/* No interpreters, and nothing at all. */
	{"/usr/sbin/nginx", "nginx: worker process", "/", NULL},
	{"/usr/lib/postgresql/15/bin/postgres", "postgres: walwriter", "/", NULL},
	{PY, "", "/", NULL},
	{"", "", "/", NULL},
};

static void a_program_goes_by_what_it_runs(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[256], name[128] = "";
		struct proc_cmdline found;

		(void)snprintf(text, sizeof(text), "%s", cases[i].args);
		if (!proc_cmdline_find(arguments(text), cases[i].exe, &found)) {
			if (cases[i].name)
				fail_msg("%s: nothing found", cases[i].args);
			continue;
		}
		proc_cmdline_name(&found, cases[i].cwd, name, sizeof(name));
		if (!cases[i].name || strcmp(name, cases[i].name) != 0)
			fail_msg("%s: '%s', not '%s'", cases[i].args, name,
				 cases[i].name ? cases[i].name : "(none)");
	}
}

static void only_relative_files_need_the_directory(void **state)
{
	static const struct {
		const char *args;
		bool needs;
	} words[] = {{"python3|app.py", true},
		     {"python3|/srv/app.py", false},
		     {"python3|-m|app", false},
		     {"gunicorn: master", false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		struct proc_cmdline found;
		char text[64];

		(void)snprintf(text, sizeof(text), "%s", words[i].args);
		assert_true(proc_cmdline_find(arguments(text), PY, &found));
		assert_int_equal(proc_cmdline_needs_cwd(&found), words[i].needs);
	}
}

static void a_command_line_without_its_last_nul_is_read_to_its_end(void **state)
{
	static const char text[] = "python3\0worker.py!!";
	struct proc_cmdline found;

	(void)state;
	assert_true(proc_cmdline_find(view_of(text, sizeof(text) - 3), PY, &found));
	assert_int_equal(found.what.len, strlen("worker.py"));
}

static const struct {
	const char *args;
	const char *text;
} masked[] = {
	{"", ""},
	{"sleep|10", "sleep 10"},
	{"a||b||||", "a  b"},
	{"app|--password|hunter2|--host|h", "app --password *** --host h"},
	{"app|--password|two words|x", "app --password *** x"},
	{"app|--password=hunter2|x", "app --password=*** x"},
	{"app|--db-password=two words|x", "app --db-password=*** x"},
	{"app|--token=abc,def&ghi|x", "app --token=*** x"},
	{"app|--api-key|k|--apikey=k|--api_key=k", "app --api-key *** --apikey=*** --api_key=***"},
	{"env|AWS_SECRET_ACCESS_KEY=k|SIGNING_KEY=k|PWD=/x|app",
	 "env AWS_SECRET_ACCESS_KEY=*** SIGNING_KEY=*** PWD=/x app"},
	{"java|-Dspring.datasource.password=k|-Dx=y|A",
	 "java -Dspring.datasource.password=*** -Dx=y A"},
	{"app|--password-file=/run/p|--token-path|/run/t",
	 "app --password-file=/run/p --token-path /run/t"},
	{"psql|postgres://bob:hunter2@db:5432/x?sslmode=require",
	 "psql postgres://bob:***@db:5432/x?sslmode=require"},
	{"psql|postgres://bob:hun@ter2@db/x", "psql postgres://bob:***@db/x"},
	{"git|clone|https://ghp_0123456789abcdefghij@github.com/x",
	 "git clone https://***@github.com/x"},
	{"git|clone|ssh://git@github.com/x", "git clone ssh://git@github.com/x"},
	{"curl|https://x/y?a=1&token=abc&b=2", "curl https://x/y?a=1&token=***&b=2"},
	{"curl|-H|Authorization: Bearer abc|x", "curl -H Authorization: *** x"},
	{"curl|-H|X-Auth-Token:abc|x", "curl -H X-Auth-Token:*** x"},
	{"curl|-u|bob:hunter2|x", "curl -u *** x"},
	{"mysql|-phunter2|-h|db", "mysql -p*** -h db"},
	{"mysql|-p|db", "mysql -p db"},
	{"/usr/bin/sshpass|-p|hunter2|ssh|x", "/usr/bin/sshpass -p *** ssh x"},
	{"openssl|x|-passin|pass:hunter2", "openssl x -passin ***"},
	{"openssl|x|pass:hunter2", "openssl x pass:***"},
	{"sh|-c|mysql --password=a -h db", "sh -c mysql --password=*** -h db"},
	{"sh|-c|app --password \"a b\" -h db", "sh -c app --password *** -h db"},
	{"sh|-c|app --password='a b' -h db", "sh -c app --password=*** -h db"},
	{"sh|-c|app --password='a b", "sh -c app --password=***"},
	{"app|{\"password\":\"x\",\"a\":1}", "app {\"password\":***"},
	{"app|--listen|0.0.0.0:80|key:value", "app --listen 0.0.0.0:80 key:value"},
	{"app|\033[31mred\a", "app ?[31mred?"},
	{"app|--password", "app --password"},
};

static void secrets_are_hidden(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(masked); i++) {
		char text[256], line[257];

		(void)snprintf(text, sizeof(text), "%s", masked[i].args);
		proc_cmdline_text(arguments(text), line, sizeof(line));
		if (strcmp(line, masked[i].text) != 0)
			fail_msg("'%s', not '%s'", line, masked[i].text);
	}
}

static void a_long_command_line_is_cut_between_characters(void **state)
{
	char text[64] = "0123456789\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", line[17];

	(void)state;
	proc_cmdline_text(arguments(text), line, sizeof(line));
	assert_string_equal(line, "0123456789\xc3\xa4...");
	proc_cmdline_text(view_of(text, 16), line, sizeof(line));
	assert_int_equal(strlen(line), 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_goes_by_what_it_runs),
		cmocka_unit_test(only_relative_files_need_the_directory),
		cmocka_unit_test(a_command_line_without_its_last_nul_is_read_to_its_end),
		cmocka_unit_test(secrets_are_hidden),
		cmocka_unit_test(a_long_command_line_is_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
