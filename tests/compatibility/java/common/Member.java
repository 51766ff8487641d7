import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/** A member of the cell's group with a thread of its own: an old client's poll returns only when the group is settled. */
final class Member extends Listener implements AutoCloseable {
    final List<String> read = new CopyOnWriteArrayList<>();
    final AtomicInteger assigned = new AtomicInteger();
    final AtomicInteger revoked = new AtomicInteger();
    volatile int owned;
    volatile String problem;
    private volatile boolean isClosing;
    private final KafkaConsumer<String, String> consumer;
    private final Thread thread;

    Member(Cell cell, String... pairs) {
        consumer = cell.consumer(pairs);
        consumer.subscribe(Arrays.asList(cell.topic), this);
        thread = new Thread(this::run);
        thread.start();
    }

    private void run() {
        try {
            while (!isClosing) {
                Version.poll(consumer, 50).forEach(record -> read.add(record.partition() + "/" + record.offset()));
                owned = consumer.assignment().size();
            }
            consumer.commitSync(); // so that the group is still there to be looked at
        } catch (Throwable error) {
            problem = error.toString();
        } finally {
            consumer.close();
        }
    }

    @Override public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        assigned.addAndGet(partitions.size());
    }

    @Override public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        revoked.addAndGet(partitions.size());
    }

    @Override public void close() throws InterruptedException {
        isClosing = true;
        thread.join(Cell.PATIENCE_MS);
        Cell.expect(problem == null, problem);
    }
}
