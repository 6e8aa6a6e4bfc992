import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.Cache;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.WriteBufferManager;

/**
 * The demo's Kafka Streams application `orders`: keeps each customer's latest order (key-value store) and revenue per
 * minute (windowed store), both in RocksDB with JSON changelogs. Launched from source.
 *
 * Arguments: bootstrap servers, state folder, RocksDB memory ("unbounded" or "bounded").
 */
public final class OrdersApp {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String NO_REVENUE = "{\"orders\":0,\"revenue\":0.0}";

    public static void main(String[] args) {
        KafkaStreams streams = new KafkaStreams(topology().build(), settings(args[0], args[1], args[2]));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(5))));
        streams.start();
    }

    private static StreamsBuilder topology() {
        StreamsBuilder builder = new StreamsBuilder();
        KGroupedStream<String, String> byCustomer = builder.<String, String>stream("orders").groupByKey(Grouped.as("customer"));
        byCustomer.reduce((earlier, latest) -> latest, Materialized.as("customer-latest"));
        byCustomer.windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofSeconds(10)))
                .aggregate(() -> NO_REVENUE, (customer, order, total) -> add(total, order), Materialized.as("customer-revenue"));
        return builder;
    }

    private static String add(String total, String order) {
        try {
            ObjectNode sum = (ObjectNode) JSON.readTree(total);
            sum.put("orders", sum.get("orders").asLong() + 1);
            sum.put("revenue", sum.get("revenue").asDouble() + JSON.readTree(order).path("amount").asDouble());
            return JSON.writeValueAsString(sum);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("an order is not JSON: " + order, e);
        }
    }

    private static Properties settings(String servers, String stateFolder, String memory) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "orders");
        settings.put(StreamsConfig.CLIENT_ID_CONFIG, "orders-1");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, stateFolder);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 1000);
        // Without record caches, every update is written to the changelogs.
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        if (memory.equals("bounded")) {
            settings.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, BoundedMemory.class);
        }
        return settings;
    }

    /** All stores of the JVM share one block cache and one budget for write buffers. */
    public static final class BoundedMemory implements RocksDBConfigSetter {
        // Four shards. RocksDB's default of 64 shards has half a MiB each, of which entries of 256 KiB waste space.
        private static final Cache CACHE = new LRUCache(32L << 20, 2);
        private static final WriteBufferManager BUFFERS = new WriteBufferManager(16L << 20, CACHE);

        @Override
        public void setConfig(String store, Options options, Map<String, Object> configs) {
            BlockBasedTableConfig table = (BlockBasedTableConfig) options.tableFormatConfig();
            table.setBlockCache(CACHE);
            table.setCacheIndexAndFilterBlocks(true);
            options.setTableFormatConfig(table);
            options.setWriteBufferManager(BUFFERS);
            options.setWriteBufferSize(2L << 20);
            options.setMaxWriteBufferNumber(2);
        }

        @Override
        public void close(String store, Options options) {
            // Nothing to close: cache and memory budget are shared by all stores.
        }
    }

    private OrdersApp() {}
}
