import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.matcher.ElementMatchers;

/**
 * A Java agent that simulates a throttled disk under a Kafka broker's logs: each request takes the time, in seconds, in
 * the file that is the argument; without that file, requests are not delayed.
 *
 * A flush is two requests, one after the other: the data, then the file system's journal. All but the newest data of a
 * log is read from disk, 128 KiB at a time (the kernel's read-ahead), because the load has evicted it from the page cache.
 * Writes go to memory. All effects are the broker's own behavior.
 */
public final class SlowDisk {
    private static final int READ_AHEAD_BYTES = 128 << 10;
    private static final int IN_MEMORY_BYTES = 1 << 20;
    private static final long LOOK_AGAIN_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static Path requestSeconds;
    private static volatile long lookedAt = System.nanoTime() - LOOK_AGAIN_NANOS;
    private static volatile double seconds;

    public static void premain(String file, Instrumentation instrumentation) {
        requestSeconds = Path.of(file);
        new AgentBuilder.Default()
                .disableClassFormatChanges()
                .type(ElementMatchers.named("org.apache.kafka.common.record.internal.FileRecords"))
                .transform((builder, type, loader, module, domain) -> builder
                        .visit(Advice.to(Flush.class).on(ElementMatchers.named("flush")))
                        .visit(Advice.to(Send.class).on(ElementMatchers.named("writeTo"))))
                .installOn(instrumentation);
    }

    /** Inlined into FileRecords.flush. */
    static final class Flush {
        @Advice.OnMethodEnter
        static void enter() {
            SlowDisk.await(2);
        }
    }

    /** Inlined into FileRecords.writeTo, which sends a part of a log to a client. */
    static final class Send {
        @Advice.OnMethodExit
        static void exit(
                @Advice.FieldValue("channel") FileChannel log,
                @Advice.FieldValue("start") int start,
                @Advice.Argument(1) int offset,
                @Advice.Return int sentBytes) throws IOException {
            SlowDisk.read(log.size() - start - offset, sentBytes);
        }
    }

    /** Delays a read of `bytes` that begins at a distance from the end of the log. */
    public static void read(long beforeEnd, int bytes) {
        if (beforeEnd > IN_MEMORY_BYTES) {
            await((bytes + READ_AHEAD_BYTES - 1) / READ_AHEAD_BYTES);
        }
    }

    public static void await(int requests) {
        long now = System.nanoTime();
        if (now - lookedAt >= LOOK_AGAIN_NANOS) {
            seconds = readSeconds();
            lookedAt = now;
        }
        try {
            TimeUnit.NANOSECONDS.sleep((long) (requests * seconds * 1e9));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static double readSeconds() {
        try {
            return Files.exists(requestSeconds) ? Double.parseDouble(Files.readString(requestSeconds).strip()) : 0;
        } catch (IOException e) {
            throw new IllegalStateException(requestSeconds + " cannot be read", e);
        }
    }

    private SlowDisk() {}
}
