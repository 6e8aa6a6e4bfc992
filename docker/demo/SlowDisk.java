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
 * A Java agent that makes a Kafka broker's logs lie on a disk that is held back: each request to it takes as long as the
 * file named as argument says, in seconds; without that file the disk is as quick as it is.
 *
 * A flush is two requests, one after the other: the data, then the file system's journal. What isn't the newest of a log
 * is read from the disk, 128 KiB at a time as the kernel reads ahead, and doesn't stay in memory: the load that holds the
 * disk back has pushed it out. Writes go into memory. All that follows is the broker's own doing.
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

    /** Inlined into FileRecords.writeTo, which sends a part of a log to whoever fetches it. */
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

    /** So many bytes, which begin so far before the log's end. */
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
            throw new IllegalStateException(requestSeconds + " can't be read", e);
        }
    }

    private SlowDisk() {}
}
