import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.time.Duration;
import java.util.Properties;
import javax.sql.DataSource;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;

/**
 * A Kafka Streams application with two stream threads that looks each record up through a pool of connections. The
 * database is a sleep: what takes the time lies outside of the JVM. Or it computes for as long.
 *
 * Arguments: bootstrap servers, state folder, milliseconds of a record, connections of the pool (0: it computes).
 */
public final class LookUpApp {
    public static void main(String[] args) {
        long milliseconds = Long.parseLong(args[2]);
        int connections = Integer.parseInt(args[3]);
        DataSource pool = connections > 0 ? pool(connections) : null;
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("orders")
                .mapValues(order -> pool != null ? lookUp(pool, milliseconds, order) : compute(milliseconds, order))
                .to("priced");
        KafkaStreams streams = new KafkaStreams(builder.build(), settings(args[0], args[1]));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(5))));
        streams.start();
    }

    private static String lookUp(DataSource pool, long milliseconds, String order) {
        try (Connection connection = pool.getConnection()) {
            Thread.sleep(milliseconds);
            return order;
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static String compute(long milliseconds, String order) {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long until = threads.getCurrentThreadCpuTime() + milliseconds * 1_000_000;
        while (threads.getCurrentThreadCpuTime() < until) {
            Thread.onSpinWait();
        }
        return order;
    }

    private static DataSource pool(int connections) {
        HikariConfig config = new HikariConfig();
        config.setDataSource((DataSource) answering(DataSource.class));
        config.setMaximumPoolSize(connections);
        config.setConnectionTimeout(60_000);
        config.setRegisterMbeans(true);
        return new HikariDataSource(config);
    }

    /** What a pool asks of a data source and of its connections: true, 0 or another such. */
    private static Object answering(Class<?> type) {
        return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (self, method, args) -> {
            Class<?> wanted = method.getReturnType();
            if (wanted == boolean.class) {
                return true;
            }
            return wanted == int.class ? (Object) 0 : wanted.isInterface() ? answering(wanted) : null;
        });
    }

    private static Properties settings(String servers, String stateFolder) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "pricing");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, stateFolder);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        return settings;
    }

    private LookUpApp() {}
}
