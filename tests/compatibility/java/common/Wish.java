import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import org.apache.kafka.common.TopicPartition;

/** What WishAssignor does, free of the interface that it has in this version: "5,0" is a wish for these two partitions. */
final class Wish {
    static final String SETTING = "wish.partitions";
    static final Set<String> ANSWERS = new ConcurrentSkipListSet<>();

    static ByteBuffer bytes(String text) {
        return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    static List<TopicPartition> partitions(String topic, ByteBuffer wish) {
        List<TopicPartition> partitions = new ArrayList<>();
        for (String index : text(wish).split(",")) partitions.add(new TopicPartition(topic, Integer.parseInt(index)));
        return partitions;
    }

    static ByteBuffer answer(ByteBuffer wish) {
        return bytes("granted " + text(wish));
    }

    static void hear(ByteBuffer answer) {
        ANSWERS.add(text(answer));
    }

    private static String text(ByteBuffer buffer) {
        return StandardCharsets.UTF_8.decode(buffer.duplicate()).toString();
    }
}
