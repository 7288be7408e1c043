#!/usr/bin/env python3
"""The blocks of a store as other engines see them: total by service and the ten functions with most self time, by DuckDB, chDB (ClickHouse) and
Spark (a master and two workers on loopback), which have to agree with each other and, with --server, with `plumb serve`.

  pip install duckdb chdb pyspark;  engines.py STORE/blocks/anonymous [--server http://127.0.0.1:4041] [--engines duckdb,chdb,spark]

Which blocks count is in their block.json: all but those that another one replaces.
"""
import argparse, glob, json, os, subprocess, sys, time, urllib.request

def live(tenant):
    metas = [json.load(open(path)) for path in glob.glob(os.path.join(tenant, 'blocks', '*', 'block.json'))]
    replaced = {one for meta in metas for one in meta['replaces']}
    return [os.path.join(tenant, 'blocks', meta['id']) for meta in metas if meta['id'] not in replaced]

# What is asked. {t} is a table of one block with the block's number.
BY_SERVICE = """SELECT s.service_name AS name, sum(x.value) AS total
FROM samples x JOIN series s ON x.block = s.block AND x.series = s.series GROUP BY s.service_name"""
BY_FUNCTION = """SELECT f.{function} AS name, sum(x.value) AS total
FROM samples x JOIN stacks k ON x.block = k.block AND x.stack = k.stack
JOIN frames f ON f.block = k.block AND f.frame = {leaf} GROUP BY f.{function} ORDER BY total DESC, name LIMIT 10"""
TABLES = ['samples', 'series', 'stacks', 'frames']

def duckdb_engine(blocks):
    import duckdb
    db = duckdb.connect()
    for table in TABLES:
        parts = ' UNION ALL '.join(
            f"SELECT {number} AS block, * FROM read_parquet('{block}/{table}.parquet')" for number, block in enumerate(blocks))
        db.execute(f'CREATE VIEW {table} AS {parts}')
    query = lambda sql: db.execute(sql).fetchall()
    return query(BY_SERVICE), query(BY_FUNCTION.format(function='function', leaf='k.frames[-1]'))

def chdb_engine(blocks):
    from chdb import session
    with session.Session() as db:
        for table in TABLES:
            parts = ' UNION ALL '.join(
                f"SELECT {number} AS block, * FROM file('{block}/{table}.parquet', Parquet)" for number, block in enumerate(blocks))
            db.query(f'CREATE OR REPLACE VIEW {table} AS {parts}')
        query = lambda sql: [tuple(json.loads(line).values()) for line in str(db.query(sql, 'JSONEachRow')).splitlines()]
        return query(BY_SERVICE), query(BY_FUNCTION.format(function='`function`', leaf='k.frames[-1]'))

def spark_engine(blocks):
    import pyspark
    from pyspark.sql import SparkSession
    home = os.path.dirname(pyspark.__file__)
    env = dict(os.environ, SPARK_LOCAL_IP='127.0.0.1', SPARK_NO_DAEMONIZE='1')
    start = lambda *what: subprocess.Popen([home + '/bin/spark-class', *what], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    master = [start('org.apache.spark.deploy.master.Master', '--host', '127.0.0.1', '--port', '17077', '--webui-port', '18080')]
    time.sleep(5)
    workers = [start('org.apache.spark.deploy.worker.Worker', '--host', '127.0.0.1', '--cores', '1', '--memory', '1g',
                     '--webui-port', str(18081 + number), 'spark://127.0.0.1:17077') for number in range(2)]
    os.environ['SPARK_LOCAL_IP'] = '127.0.0.1'
    try:
        spark = SparkSession.builder.master('spark://127.0.0.1:17077').config('spark.executor.memory', '800m') \
            .config('spark.sql.shuffle.partitions', '4').config('spark.ui.enabled', 'false').getOrCreate()
        spark.sparkContext.setLogLevel('ERROR')
        for table in TABLES:
            frames = [spark.read.parquet(f'{block}/{table}.parquet').selectExpr(f'{number} AS block', '*') for number, block in enumerate(blocks)]
            union = frames[0]
            for frame in frames[1:]:
                union = union.unionAll(frame)
            union.createOrReplaceTempView(table)
        query = lambda sql: [tuple(row) for row in spark.sql(sql).collect()]
        answer = query(BY_SERVICE), query(BY_FUNCTION.format(function='`function`', leaf='element_at(k.frames, -1)'))
        print(f'  spark: {len(workers)} workers, {spark.sparkContext.defaultParallelism} cores')
        spark.stop()
        return answer
    finally:
        for process in workers + master:
            process.terminate()
            process.wait()

def server_totals(url):
    body = {'profile_typeID': 'process_cpu:cpu:nanoseconds:cpu:nanoseconds', 'label_selector': '{}', 'start': 1, 'end': 4102444800000,
            'step': 4102444800, 'group_by': ['service_name']}
    request = urllib.request.Request(url + '/querier.v1.QuerierService/SelectSeries', json.dumps(body).encode(), {'Content-Type': 'application/json'})
    series = json.load(urllib.request.urlopen(request))['series']
    return {one['labels'][0]['value']: sum(int(point['value']) for point in one['points']) for one in series}

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('tenant')
    parser.add_argument('--server')
    parser.add_argument('--engines', default='duckdb,chdb,spark')
    options = parser.parse_args()
    blocks = live(os.path.abspath(options.tenant))
    print(f'{len(blocks)} blocks')
    answers = {}
    for name in options.engines.split(','):
        begin = time.time()
        services, functions = globals()[name + '_engine'](blocks)
        answers[name] = ({service: int(total) for service, total in services}, [(str(one), int(total)) for one, total in functions])
        services, functions = answers[name]
        print(f'  {name}: total {sum(services.values())} of {len(services)} services; first {functions[0][0]} {functions[0][1]}; {time.time() - begin:.1f} s with its start')
    if options.server:
        answers['plumb'] = (server_totals(options.server), None)
        print(f'  plumb: total {sum(answers["plumb"][0].values())} of {len(answers["plumb"][0])} services')
    first, *others = answers
    for other in others:
        for one, another in zip(answers[first], answers[other]):
            if another is not None and one != another:
                sys.exit(f'{first} and {other} differ: {one} {another}')
    print('all agree')

main()
