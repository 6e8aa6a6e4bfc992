import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/**
 * A Kafka Streams application with three stream threads, for which some records are too much:
 *
 * "die alone": its handler of exceptions throws one itself, so that the thread ends and the others live on. The next
 * thread takes the record.
 * "hang": its thread waits until the file "released" is beside the state folder.
 * "die": by Kafka's default the whole client shuts down, while the process lives on.
 *
 * Arguments: bootstrap servers, state folder.
 */
public final class MortalApp {
    private static final AtomicBoolean HAS_DIED_ALONE = new AtomicBoolean();

    public static void main(String[] args) throws InterruptedException {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("orders").foreach((key, value) -> take(value, Path.of(args[1]).resolveSibling("released")));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings(args[0], args[1]));
        streams.setUncaughtExceptionHandler(MortalApp::handle);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(5))));
        streams.start();
        Thread.currentThread().join(); // as a server that has other things to do as well
    }

    private static void take(String value, Path released) {
        if (value.equals("die")) {
            throw new IllegalStateException("an order that can't be read");
        }
        if (value.equals("die alone") && HAS_DIED_ALONE.compareAndSet(false, true)) {
            throw new UnsupportedOperationException("an order that the handler can't handle");
        }
        while (value.equals("hang") && !Files.exists(released)) {
            LockSupport.parkNanos(100_000_000);
        }
    }

    private static StreamThreadExceptionResponse handle(Throwable exception) {
        if (exception.getCause() instanceof UnsupportedOperationException alone) {
            throw alone;
        }
        return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
    }

    private static Properties settings(String servers, String stateFolder) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "mortal");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, stateFolder);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 3);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.put(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, 8000); // a Streams client never says that it leaves
        return settings;
    }

    private MortalApp() {}
}
